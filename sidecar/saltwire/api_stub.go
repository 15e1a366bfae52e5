package saltwire

import "errors"

var errStub = errors.New("saltwire: not implemented yet")

// ParseEnvelope reads a request body.
func ParseEnvelope(body []byte) (Envelope, error) { return Envelope{}, errStub }

// AppendEnvelope writes a request body.
func AppendEnvelope(dst []byte, e Envelope) []byte { return dst }

// Peek is what routing and the guard read from a load.
type Peek struct {
	Cmd, ID, Nonce, JID, MasterID, Fun, Tag, Path string
	TS                                            int64
	HasTS                                         bool
	Tok                                           []byte
	HasSig                                        bool
}

// PeekLoad walks a load map.
func PeekLoad(plain []byte) (Peek, error) { return Peek{}, errStub }

// AuthRequest is the load of a sign-in.
type AuthRequest struct {
	ID, Nonce, Pub, EncAlgo, SigAlgo string
	Token                            []byte
	AutosignGrains                   []byte // raw msgpack map, nil when absent
}

// ParseAuth reads the load of a sign-in.
func ParseAuth(load []byte) (AuthRequest, error) { return AuthRequest{}, errStub }

// AppendAuth writes the load of a sign-in (for Envelope.Load).
func AppendAuth(dst []byte, a AuthRequest) []byte { return dst }

// ValidID says whether id may be a minion's.
func ValidID(id string) error { return errStub }

// AuthAccept is the inner map of an accepting sign-in reply.
type AuthAccept struct {
	PubKey                   string
	PublishPort              int
	Token, AES, Session, Sig []byte
	Nonce, PubSig            string
	HasPubSig                bool
}

// AppendAuthAccept writes the inner map of an accepting reply.
func AppendAuthAccept(dst []byte, a AuthAccept) []byte { return dst }

// AppendAuthRet writes the inner map {"ret": …, "nonce": …}; ret is true, false or a string such as "full".
func AppendAuthRet(dst []byte, ret any, nonce string) []byte { return dst }

// AppendSigned writes {"enc":"clear","load":load,"sig":sig}.
func AppendSigned(dst, load, sig []byte) []byte { return dst }

// AppendClearRet writes the unsigned {"enc":"clear","load":{"ret":ret}}.
func AppendClearRet(dst []byte, ret any) []byte { return dst }

// AuthOutcome is what a sign-in reply says.
type AuthOutcome int

// Outcomes.
const (
	AuthError AuthOutcome = iota
	AuthAccepted
	AuthPending
	AuthRejected
	AuthFull
)

// AuthReply is a decoded sign-in reply.
type AuthReply struct {
	Outcome                      AuthOutcome
	Load, Sig                    []byte // signed bytes and their signature; nil for unsigned replies
	AES, Session, SigX931, Token []byte
	PubKey                       string
	PublishPort                  int
	Nonce                        string
	PubSig                       string
	Text                         string // for AuthError: what the master said
}

// ParseAuthReply reads the reply to a sign-in.
func ParseAuthReply(body []byte) (AuthReply, error) { return AuthReply{}, errStub }

// PubEnvelope is the body of a publication.
type PubEnvelope struct {
	Load, Sig []byte
	SigAlgo   string
}

// ParsePub reads a publication.
func ParsePub(body []byte) (PubEnvelope, error) { return PubEnvelope{}, errStub }

// AppendPub writes a publication.
func AppendPub(dst, load, sig []byte, sigAlgo string) []byte { return dst }

// PubPeek is what is read from a publication's load.
type PubPeek struct {
	JID, TgtType, MasterID, User string
	Fun                          string
	Serial                       uint64
	HasSerial                    bool
	Targets                      []string
}

// PeekPub walks a publication's load.
func PeekPub(plain []byte) (PubPeek, error) { return PubPeek{}, errStub }

// SetSerial replaces or appends the serial.
func SetSerial(dst, plain []byte, serial uint64) ([]byte, error) { return dst, errStub }

// BadLoad returns the reply that makes a minion sign in again.
func BadLoad() []byte { return append([]byte{0xa8}, "bad load"...) }

// AppendEvent writes a bus event: tag, two newlines, data (one msgpack map in use_bin_type form).
func AppendEvent(dst []byte, tag string, data []byte) []byte { return dst }

// Style says which string family an encoder uses.
type Style int

// Styles.
const (
	Wire Style = iota // network: raw family for str and bytes alike
	Disk              // disk and event bus: str and bin apart
)

// AppendAny writes nil, bool, ints, float64, string, []byte, []any, []string, map[string]any (keys sorted).
func AppendAny(dst []byte, v any, s Style) ([]byte, error) { return dst, errStub }

// AppendRaw writes a byte string in the wire's raw family.
func AppendRaw(dst, b []byte) []byte { return dst }

// WalkMap calls visit with each key and the raw msgpack of its value; it checks the whole map.
func WalkMap(raw []byte, visit func(key, value []byte) error) error { return errStub }

// Bytes returns the content of a raw, str or bin value.
func Bytes(value []byte) ([]byte, bool) { return nil, false }

// Int returns an integer value.
func Int(value []byte) (int64, bool) { return 0, false }
