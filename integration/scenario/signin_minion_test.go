//go:build integration

package scenario

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/zmtp"
)

// exchangeWithin bounds one request of a byteMinion: longer than any minion waits, for two slow cores.
const exchangeWithin = 20 * time.Second

// byteMinion is a minion made of bytes: it says on the wire what a stock minion says (salt/crypt.py,
// salt/channel/client.py) and looks at every byte of what comes back, which a stock minion would not tell us about.
type byteMinion struct {
	host *lab.Host
	id   string
	key  *saltcrypt.MasterKey
	enc  string         // encryption_algorithm
	sig  string         // signing_algorithm
	pin  string         // public key of the master it has met before; empty: the first one it meets is right
	more map[string]any // autosign_grains
	got  *secrets       // of its last sign-in that was accepted

	within time.Duration // bounds one request; zero: exchangeWithin
}

// secrets is what a minion has after its sign-in was accepted.
type secrets struct {
	aes, session saltcrypt.Key
	publishPort  int
}

func (m *byteMinion) nonce() string {
	var raw [16]byte
	rand.Read(raw[:])
	return hex.EncodeToString(raw[:])
}

// exchange sends one request on a connection of its own, as REQ sockets do.
func (m *byteMinion) exchange(ctx context.Context, addr string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(m.within, exchangeWithin))
	defer cancel()
	c, err := m.connect(ctx, addr, "4506", "REQ")
	if err != nil {
		return nil, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { c.Close() })
	defer stop()
	if err := c.WriteMessage(nil, body); err != nil {
		return nil, err
	}
	parts, err := c.ReadMessage()
	if err != nil {
		return nil, fmt.Errorf("%s: no answer from %s: %w", m.id, addr, errors.Join(ctx.Err(), err))
	}
	if len(parts) != 2 || len(parts[0]) != 0 {
		return nil, fmt.Errorf("%s: answer of %d parts", m.id, len(parts))
	}
	return parts[1], nil
}

func (m *byteMinion) connect(ctx context.Context, addr, port, socket string) (*zmtp.Client, error) {
	conn, err := m.host.Dial(ctx, "tcp", net.JoinHostPort(addr, port))
	if err != nil {
		return nil, err
	}
	return zmtp.NewClient(ctx, conn, zmtp.ClientOptions{SocketType: socket, Limits: zmtp.DefaultLimits})
}

// signIn signs in at addr and tells what a minion hears: "accepted", "pending", "rejected", "full", or "unsigned
// <text>". An answer that a stock minion would not believe is an error.
func (m *byteMinion) signIn(ctx context.Context, addr string) (heard string, err error) {
	token, err := saltcrypt.NewKey()
	if err != nil {
		return "", err
	}
	req := saltwire.AuthRequest{ID: m.id, Nonce: m.nonce(), Pub: m.key.PublicText(), EncAlgo: m.enc, SigAlgo: m.sig}
	if m.pin != "" {
		master, err := saltcrypt.ParsePublicKey(m.pin)
		if err != nil {
			return "", err
		}
		algo := m.enc
		if !saltcrypt.ValidEncAlgo(algo) {
			algo = saltcrypt.OAEPSHA1
		}
		if req.Token, err = master.EncryptOAEP(algo, []byte(token.Text())); err != nil {
			return "", err
		}
	}
	if m.more != nil {
		if req.AutosignGrains, err = saltwire.AppendAny(nil, m.more, saltwire.Wire); err != nil {
			return "", err
		}
	}
	body, err := m.exchange(ctx, addr, saltwire.AppendEnvelope(nil, saltwire.Envelope{
		Enc: saltwire.EncClear, Load: saltwire.AppendAuth(nil, req), Version: 3, HasVersion: true,
	}))
	if err != nil {
		return "", err
	}
	reply, err := saltwire.ParseAuthReply(body)
	if err != nil {
		return "", fmt.Errorf("%s: %w", m.id, err)
	}
	if reply.Sig == nil {
		return "unsigned " + reply.Text, nil
	}
	return reply.Outcome.String(), m.believe(reply, req, token)
}

// believe checks a reply as stock minions do (salt/crypt.py:AsyncAuth.handle_signin_response, verify_master).
func (m *byteMinion) believe(reply saltwire.AuthReply, req saltwire.AuthRequest, token saltcrypt.Key) error {
	if m.pin == "" {
		m.pin = reply.PubKey
	}
	if m.pin == "" {
		return nil // nothing to verify a refusal with yet, as for a stock minion
	}
	master, err := saltcrypt.ParsePublicKey(m.pin)
	if err != nil {
		return err
	}
	if err := master.Verify(m.sig, reply.Load, reply.Sig); err != nil {
		return fmt.Errorf("%s: signature of the reply: %w", m.id, err)
	}
	if reply.Nonce != req.Nonce {
		return fmt.Errorf("%s: nonce %q", m.id, reply.Nonce)
	}
	if reply.Outcome != saltwire.AuthAccepted {
		return nil
	}
	if reply.PubKey != m.pin {
		return fmt.Errorf("%s: another master's key", m.id)
	}
	if req.Token != nil {
		echo, err := m.key.DecryptOAEP(m.enc, reply.Token)
		if err != nil || string(echo) != token.Text() {
			return fmt.Errorf("%s: token does not come back: %w", m.id, err)
		}
	}
	return m.learn(reply, master)
}

func (m *byteMinion) learn(reply saltwire.AuthReply, master *saltcrypt.PublicKey) error {
	s := &secrets{publishPort: reply.PublishPort}
	var texts [2][]byte
	for i, sealed := range [][]byte{reply.AES, reply.Session} {
		text, err := m.key.DecryptOAEP(m.enc, sealed)
		if err != nil {
			return fmt.Errorf("%s: %w", m.id, err)
		}
		texts[i] = text
	}
	sum := sha256.Sum256(texts[0])
	if proof, err := master.VerifyX931(reply.SigX931); err != nil || string(proof) != hex.EncodeToString(sum[:]) {
		return fmt.Errorf("%s: the AES key is not vouched for: %w", m.id, err)
	}
	var err error
	if s.aes, err = saltcrypt.ParseKey(string(texts[0])); err != nil {
		return err
	}
	if s.session, err = saltcrypt.ParseKey(string(texts[1])); err != nil {
		return err
	}
	m.got = s
	return nil
}

// request sends a sealed command and returns the body of the answer.
func (m *byteMinion) request(ctx context.Context, addr, cmd string,
	fields map[string]any) (answer []byte, nonce string, err error) {
	body, nonce, err := m.seal(cmd, fields)
	if err != nil {
		return nil, "", err
	}
	answer, err = m.exchange(ctx, addr, body)
	return answer, nonce, err
}

// seal makes the body of a request.
func (m *byteMinion) seal(cmd string, fields map[string]any) (body []byte, nonce string, err error) {
	tok, err := m.key.SignX931([]byte("salt"))
	if err != nil {
		return nil, "", err
	}
	nonce = m.nonce()
	load := map[string]any{"cmd": cmd, "id": m.id, "nonce": nonce, "ts": time.Now().Unix(), "tok": tok}
	for k, v := range fields {
		load[k] = v
	}
	plain, err := saltwire.AppendAny(nil, load, saltwire.Wire)
	if err != nil {
		return nil, "", err
	}
	return saltwire.AppendEnvelope(nil, saltwire.Envelope{
		Enc: saltwire.EncAES, Load: saltcrypt.NewCrypticle(m.got.session).Seal(nil, plain, nil),
		Version: 3, HasVersion: true, ID: m.id, EncAlgo: m.enc, SigAlgo: m.sig,
	}), nonce, nil
}

// works sends a sealed request and opens the answer: the session that the sign-in gave is good at this master, too.
func (m *byteMinion) works(ctx context.Context, addr string) error {
	answer, nonce, err := m.request(ctx, addr, "_file_envs", nil)
	if err != nil {
		return err
	}
	sealed, ok := saltwire.Bytes(answer)
	if !ok {
		return fmt.Errorf("%s: %s answers with something that is not sealed", m.id, addr)
	}
	plain, err := saltcrypt.NewCrypticle(m.got.session).Open(nil, sealed)
	if err != nil {
		return fmt.Errorf("%s: answer of %s (%.20q): %w", m.id, addr, sealed, err)
	}
	if rest, ok := bytes.CutPrefix(plain, []byte(nonce)); !ok || !bytes.Contains(rest, []byte("base")) {
		return fmt.Errorf("%s: answer of %s is not to what was asked", m.id, addr)
	}
	return nil
}
