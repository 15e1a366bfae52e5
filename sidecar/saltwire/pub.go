package saltwire

import "strings"

const maxSig = 1024 // RSA signature of an 8192-bit key

// PubEnvelope is the body of a publication on 4505 (salt/channel/server.py:PubServerChannel.wrap_payload). Slices alias
// the body.
type PubEnvelope struct {
	Load    []byte // ciphertext under the master's AES key
	Sig     []byte // PKCS#1 v1.5 signature of Load; nil when the master does not sign
	SigAlgo string
}

// ParsePub reads a publication: one map with enc "aes" and a byte string load. Errors: *Refused.
func ParsePub(body []byte) (PubEnvelope, error) {
	it, err := openMap(body, openRules)
	if err != nil {
		return PubEnvelope{}, err
	}
	var p PubEnvelope
	var s seen
	for {
		key, value, ok, err := it.nextPair()
		if err != nil {
			return PubEnvelope{}, err
		}
		if !ok {
			break
		}
		if err := p.setField(&s, string(key), value); err != nil {
			return PubEnvelope{}, err
		}
	}
	switch {
	case s&1 == 0:
		return PubEnvelope{}, refuse(ReasonMissing, "enc")
	case s&2 == 0:
		return PubEnvelope{}, refuse(ReasonMissing, "load")
	}
	return p, nil
}

func (p *PubEnvelope) setField(s *seen, key string, value []byte) (err error) {
	switch key {
	case "enc":
		if b, _ := Bytes(value); string(b) != EncAES {
			return refuse(ReasonEnc, "")
		}
		return s.checkFirst(0, key)
	case "load":
		b, ok := Bytes(value)
		if !ok {
			return refuse(ReasonType, key)
		}
		p.Load = b
		return s.checkFirst(1, key)
	case "sig":
		if p.Sig, err = readBlob(value, maxSig, key); err != nil {
			return err
		}
		return s.checkFirst(2, key)
	case "sig_algo":
		if p.SigAlgo, err = sigAlgo(value); err != nil {
			return err
		}
		return s.checkFirst(3, key)
	}
	return nil
}

// AppendPub writes a publication in the order stock masters write it; without sig when that is nil.
func AppendPub(dst, load, sig []byte, sigAlgo string) []byte {
	n := 2
	if sig != nil {
		n = 4
	}
	dst = AppendMapHeader(dst, n)
	dst = AppendRaw(AppendRaw(dst, "enc"), EncAES)
	dst = AppendRaw(AppendRaw(dst, "load"), load)
	if sig == nil {
		return dst
	}
	dst = AppendRaw(AppendRaw(dst, "sig_algo"), sigAlgo)
	return AppendRaw(AppendRaw(dst, "sig"), sig)
}

// PubPeek is what is read from the decrypted load of a publication. Strings are copies.
type PubPeek struct {
	JID       string
	TgtType   string
	MasterID  string
	User      string
	Fun       string // the first of several
	Serial    uint64
	HasSerial bool
	Targets   []string // of a list target (tgt a list, or tgt_type list and tgt comma-separated); else nil
}

// Indexes of fields for seen.
const (
	pubJID uint = iota
	pubTgt
	pubTgtType
	pubMasterID
	pubUser
	pubFun
	pubSerial
)

// PeekPub walks the load of a publication: one map and nothing after it, its known fields once and of their type.
// Errors: *Refused.
func PeekPub(plain []byte) (PubPeek, error) {
	var p PubPeek
	var s seen
	var tgt []byte
	err := WalkMap(plain, func(key, value []byte) error {
		if string(key) == "tgt" {
			tgt = value
			return s.checkFirst(pubTgt, "tgt")
		}
		return p.setField(&s, string(key), value)
	})
	if err != nil {
		return PubPeek{}, err
	}
	if p.Targets, err = listTargets(tgt, p.TgtType); err != nil {
		return PubPeek{}, err
	}
	return p, nil
}

func (p *PubPeek) setField(s *seen, key string, value []byte) error {
	switch key {
	case "jid":
		return s.setJID(&p.JID, pubJID, value)
	case "tgt_type":
		return s.setOptional(&p.TgtType, pubTgtType, value, maxID, key)
	case "master_id":
		return s.setMaster(&p.MasterID, pubMasterID, value)
	case "user":
		return s.setOptional(&p.User, pubUser, value, maxName, key)
	case "fun":
		return s.setFun(&p.Fun, pubFun, value)
	case "serial":
		if p.Serial, p.HasSerial = Uint(value); !p.HasSerial {
			return refuse(ReasonType, key)
		}
		return s.checkFirst(pubSerial, key)
	}
	return nil
}

// listTargets returns the ids a list target names (salt/matchers/list_match.py).
func listTargets(tgt []byte, tgtType string) ([]string, error) {
	if asArray(tgt) != nil {
		ids := []string{}
		err := WalkArray(tgt, func(value []byte) error {
			id, err := readText(value, maxName, "tgt")
			ids = append(ids, id)
			return err
		})
		return ids, err
	}
	if b, ok := Bytes(tgt); ok && tgtType == "list" {
		return strings.Split(string(b), ","), nil
	}
	return nil, nil
}
