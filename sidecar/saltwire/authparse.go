package saltwire

// AuthOutcome is what a master made of a sign-in.
type AuthOutcome int

// The outcomes; AuthError is none of Salt's but whatever is not one of the others.
const (
	AuthError AuthOutcome = iota
	AuthAccepted
	AuthPending
	AuthRejected
	AuthFull
)

func (o AuthOutcome) String() string {
	switch o {
	case AuthAccepted:
		return "accepted"
	case AuthPending:
		return "pending"
	case AuthRejected:
		return "rejected"
	case AuthFull:
		return "full"
	}
	return "error"
}

const (
	maxReplyField = 16 << 10
	maxReplyText  = 256
)

// AuthReply is a decoded reply to a sign-in. Byte slices alias the body. Nothing in it is verified: Load and Sig are
// for the caller to verify, and an outcome without them is worth nothing from a master that is not local.
type AuthReply struct {
	Outcome     AuthOutcome
	Load, Sig   []byte // the signed bytes and their PKCS#1 v1.5 signature; nil in an unsigned reply
	AES         []byte // OAEP
	Session     []byte // OAEP
	SigX931     []byte
	Token       []byte // OAEP echo; nil when absent
	PubKey      string
	PublishPort int
	Nonce       string
	PubSig      string
	HasPubSig   bool
	Text        string // of AuthError: what the master said, shortened
}

// ParseAuthReply reads the reply to a sign-in: the signed forms of docs/dev/protocol.md §3.3 and §3.5, their unsigned
// ones, a bare string ("bad load") and {"error": …}. Errors: *Refused when it is none of these.
func ParseAuthReply(body []byte) (AuthReply, error) {
	if b, ok := Bytes(body); ok {
		return AuthReply{Text: shortenText(b)}, nil
	}
	var r AuthReply
	var s seen
	var load []byte
	err := WalkMap(body, func(key, value []byte) (err error) {
		switch string(key) {
		case "load":
			load, err = value, s.checkFirst(0, "load")
		case "sig":
			if err = s.checkFirst(1, "sig"); err == nil {
				r.Sig, err = readBlob(value, maxReplyField, "sig")
			}
		case "error", "msg":
			b, _ := Bytes(value)
			r.Text = shortenText(b)
		}
		return err
	})
	if err != nil || load == nil {
		if err == nil && r.Text == "" {
			err = refuse(ReasonMissing, "load")
		}
		return AuthReply{Text: r.Text}, err
	}
	if signed, ok := Bytes(load); ok {
		r.Load, load = signed, signed
	} else {
		r.Sig = nil
	}
	if err := r.readInner(load); err != nil {
		return AuthReply{}, err
	}
	return r, nil
}

func (r *AuthReply) readInner(load []byte) error {
	var s seen
	if err := WalkMap(load, func(key, value []byte) error { return r.setField(&s, string(key), value) }); err != nil {
		return err
	}
	if r.PubKey == "" { // no acceptance: ret has told the outcome
		if s&1 == 0 {
			return refuse(ReasonMissing, "ret")
		}
		return nil
	}
	for name, b := range map[string][]byte{"aes": r.AES, "session": r.Session, "sig": r.SigX931} {
		if len(b) == 0 {
			return refuse(ReasonMissing, name)
		}
	}
	r.Outcome = AuthAccepted
	return nil
}

func (r *AuthReply) setField(s *seen, key string, value []byte) (err error) {
	names := [...]string{"ret", "pub_key", "publish_port", "token", "aes", "session", "sig", "nonce", "pub_sig"}
	for i, name := range names {
		if key == name {
			err = s.checkFirst(uint(i), name)
		}
	}
	if err != nil {
		return err
	}
	switch key {
	case "ret":
		r.setRet(value)
	case "pub_key":
		r.PubKey, err = readText(value, maxPub, key)
	case "publish_port":
		port, ok := Int(value)
		if !ok || port < 1 || port > 65535 {
			return refuse(ReasonType, key)
		}
		r.PublishPort = int(port)
	case "token":
		r.Token, err = readBlob(value, maxReplyField, key)
	case "aes":
		r.AES, err = readBlob(value, maxReplyField, key)
	case "session":
		r.Session, err = readBlob(value, maxReplyField, key)
	case "sig":
		r.SigX931, err = readBlob(value, maxReplyField, key)
	case "nonce":
		r.Nonce, err = readText(value, maxNonce, key)
	case "pub_sig":
		r.PubSig, err = readText(value, maxReplyField, key)
		r.HasPubSig = true
	}
	return err
}

func (r *AuthReply) setRet(value []byte) {
	if b, ok := Bool(value); ok {
		r.Outcome = AuthRejected
		if b {
			r.Outcome = AuthPending
		}
		return
	}
	b, _ := Bytes(value)
	if string(b) == "full" {
		r.Outcome = AuthFull
		return
	}
	r.Text = shortenText(b)
}

func shortenText(b []byte) string { return string(b[:min(len(b), maxReplyText)]) }
