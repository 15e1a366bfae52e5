package herd

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// Credentials are what a minion has after it signed in.
type Credentials struct {
	Master      *saltcrypt.PublicKey
	AES         saltcrypt.Key // opens publications
	PublishPort int

	by         *Identity
	session    *saltcrypt.Crypticle
	sessionKey saltcrypt.Key
}

// ID is the minion's.
func (c *Credentials) ID() string { return c.by.ID }

// Session seals this minion's requests and their replies.
func (c *Credentials) Session() *saltcrypt.Crypticle { return c.session }

// Request seals a command (salt/channel/client.py:_package_load). fields are added to what every request has.
func (c *Credentials) Request(cmd string, fields map[string]any) (body []byte, nonce string, err error) {
	if nonce, err = newNonce(); err != nil {
		return nil, "", err
	}
	load := map[string]any{"cmd": cmd, "id": c.by.ID, "nonce": nonce, "ts": time.Now().Unix(), "tok": c.by.tok}
	for k, v := range fields {
		load[k] = v
	}
	plain, err := saltwire.AppendAny(make([]byte, 0, 768), load, saltwire.Wire)
	if err != nil {
		return nil, "", fmt.Errorf("encode %s: %w", cmd, err)
	}
	return saltwire.AppendEnvelope(nil, saltwire.Envelope{
		Enc: saltwire.EncAES, Version: payloadVersion, HasVersion: true, ID: c.by.ID, EncAlgo: c.by.Enc, SigAlgo: c.by.Sig,
		Load: c.session.Seal(nil, plain, nil),
	}), nonce, nil
}

// badLoad is what a master answers to what it cannot open.
var badLoad = saltwire.BadLoad()

// Refused says whether a reply is "bad load", after which a minion signs in anew.
func Refused(reply []byte) bool { return bytes.Equal(reply, badLoad) }

// Open opens the reply to a request and returns the msgpack behind the nonce, which must be that of the request.
func (c *Credentials) Open(reply []byte, nonce string) ([]byte, error) {
	sealed, ok := saltwire.Bytes(reply)
	if !ok {
		return nil, fmt.Errorf("%s: %w: no byte string", c.by.ID, ErrReply)
	}
	plain, err := c.session.Open(nil, sealed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w (%.40q)", c.by.ID, ErrReply, err, sealed)
	}
	rest, ok := bytes.CutPrefix(plain, []byte(nonce))
	if !ok || len(rest) == 0 {
		return nil, fmt.Errorf("%s: %w: another nonce, or nothing behind it", c.by.ID, ErrReply)
	}
	return rest, nil
}

// OpenPrivate opens the reply to a request that is answered under a key of its own, which is sealed for the minion's,
// and signed (_pillar; salt/channel/client.py:crypted_transfer_decode_dictentry). The minion has that key and those
// algorithms, and its master is known.
func OpenPrivate(key Key, enc, sig string, master *saltcrypt.PublicKey,
	reply []byte) (data saltwire.PrivateData, err error) {
	private, err := saltwire.ParsePrivateReply(reply)
	if err != nil {
		return data, err
	}
	text, err := key.DecryptOAEP(enc, private.Key)
	if err != nil {
		return data, err
	}
	once, err := saltcrypt.ParseKey(string(text))
	if err != nil {
		return data, err
	}
	plain, err := saltcrypt.NewCrypticle(once).Open(nil, private.Pillar)
	if err != nil {
		return data, err
	}
	signed, err := saltwire.ParseSignedReply(plain)
	if err != nil {
		return data, err
	}
	if err := master.Verify(sig, signed.Data, signed.Sig); err != nil {
		return data, err
	}
	if data, err = saltwire.ParsePrivateData(signed.Data); err == nil && !bytes.Equal(data.Key, private.Key) {
		err = errors.New("another key")
	}
	return data, err
}
