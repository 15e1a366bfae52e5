package saltwire

// The values of enc. No other exists, and no other passes the edge (docs/dev/protocol.md §2.1).
const (
	EncClear = "clear"
	EncAES   = "aes"
)

const (
	maxEnvelopeKeys = 32  // six are known; a later Salt may add some
	maxID           = 255 // a minion id is a file name
	maxVersion      = 255
)

// Envelope is the outer map of a request on 4506 (salt/channel/client.py:AsyncReqChannel._package_load).
type Envelope struct {
	Enc        string // EncClear or EncAES
	Version    int    // payload version, 0 when absent
	HasVersion bool
	ID         string // minion id of an aes request; says whose session key seals the load. Not checked by ValidID.
	Load       []byte // aes: the ciphertext; clear: the raw msgpack of the load map. Aliases the body.
	EncAlgo    string // for private replies, one that Salt knows; empty when absent
	SigAlgo    string
}

// ParseEnvelope reads a request body, strictly: one msgpack map and nothing after it, string keys, none twice, no
// extension types, nesting of at most 64, enc as above, version a small integer, load a map (clear) or a byte string
// (aes), id present in an aes request of version 3 on, algorithms that Salt has (another makes some workers stumble
// after they rendered the pillar). Errors: *Refused.
func ParseEnvelope(body []byte) (Envelope, error) {
	it, err := openMap(body, openRules)
	if err != nil {
		return Envelope{}, err
	}
	if it.left > maxEnvelopeKeys {
		return Envelope{}, refuse(ReasonTooManyKey, "")
	}
	var e Envelope
	var keys [maxEnvelopeKeys][]byte
	for n := 0; ; n++ {
		key, value, ok, err := it.nextPair()
		if err != nil {
			return Envelope{}, err
		}
		if !ok {
			break
		}
		for _, k := range keys[:n] {
			if string(k) == string(key) {
				return Envelope{}, refuse(ReasonDuplicate, "")
			}
		}
		keys[n] = key
		if err := e.setField(key, value); err != nil {
			return Envelope{}, err
		}
	}
	if err := e.checkComplete(); err != nil {
		return Envelope{}, err
	}
	return e, nil
}

func (e *Envelope) setField(key, value []byte) (err error) {
	switch string(key) {
	case "enc":
		b, _ := Bytes(value)
		switch string(b) {
		case EncClear:
			e.Enc = EncClear
		case EncAES:
			e.Enc = EncAES
		default:
			return refuse(ReasonEnc, "")
		}
	case "version":
		v, ok := Int(value)
		if !ok || v < 0 || v > maxVersion {
			return refuse(ReasonVersion, "")
		}
		e.Version, e.HasVersion = int(v), true
	case "id":
		e.ID, err = readText(value, maxID, "id")
	case "load":
		e.Load = value
	case "enc_algo":
		e.EncAlgo, err = encAlgo(value)
	case "sig_algo":
		e.SigAlgo, err = sigAlgo(value)
	}
	return err
}

// checkComplete checks what can only be checked when all fields are there, because they come in any order.
func (e *Envelope) checkComplete() error {
	switch {
	case e.Enc == "":
		return refuse(ReasonMissing, "enc")
	case e.Load == nil:
		return refuse(ReasonMissing, "load")
	}
	h, err := readHead(e.Load)
	if err != nil {
		return err
	}
	if e.Enc == EncClear {
		if h.kind != kindMap {
			return refuse(ReasonType, "load")
		}
		return nil
	}
	if h.kind != kindBytes {
		return refuse(ReasonType, "load")
	}
	if e.Version >= 3 && e.ID == "" {
		return refuse(ReasonMissing, "id")
	}
	e.Load = e.Load[h.len:]
	return nil
}

// AppendEnvelope writes a request body in the order stock minions write it. Load is a ciphertext (aes) or an encoded
// map (clear); ID and the algorithms are written when set.
func AppendEnvelope(dst []byte, e Envelope) []byte {
	n := 2
	for _, set := range []bool{e.HasVersion, e.ID != "", e.EncAlgo != "", e.SigAlgo != ""} {
		if set {
			n++
		}
	}
	dst = AppendMapHeader(dst, n)
	dst = AppendRaw(AppendRaw(dst, "enc"), e.Enc)
	dst = AppendRaw(dst, "load")
	if e.Enc == EncAES {
		dst = AppendRaw(dst, e.Load)
	} else {
		dst = append(dst, e.Load...)
	}
	if e.HasVersion {
		dst = AppendInt(AppendRaw(dst, "version"), int64(e.Version))
	}
	if e.ID != "" {
		dst = AppendRaw(AppendRaw(dst, "id"), e.ID)
	}
	if e.EncAlgo != "" {
		dst = AppendRaw(AppendRaw(dst, "enc_algo"), e.EncAlgo)
	}
	if e.SigAlgo != "" {
		dst = AppendRaw(AppendRaw(dst, "sig_algo"), e.SigAlgo)
	}
	return dst
}
