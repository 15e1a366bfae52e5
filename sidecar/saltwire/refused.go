package saltwire

// Refused says why a message from the network was not understood or not accepted. Reason is stable (one of the Reason
// constants); Field names the map key concerned and may be empty. It never contains content of the message.
type Refused struct {
	Reason string
	Field  string
}

func (r *Refused) Error() string {
	if r.Field == "" {
		return "salt message refused: " + r.Reason
	}
	return "salt message refused: " + r.Reason + " (" + r.Field + ")"
}

// The reasons a message is refused for.
const (
	ReasonTruncated  = "truncated msgpack"
	ReasonTrailing   = "trailing bytes"
	ReasonDepth      = "nested too deeply"
	ReasonFormat     = "invalid msgpack"
	ReasonNotMap     = "not a map"
	ReasonKeyType    = "map key is not a string"
	ReasonDuplicate  = "duplicate map key"
	ReasonType       = "wrong type of a field"
	ReasonMissing    = "missing field"
	ReasonSize       = "field too long"
	ReasonEnc        = "enc is neither clear nor aes"
	ReasonVersion    = "version is not a small integer"
	ReasonCommand    = "not the expected command"
	ReasonEncAlgo    = "bad enc algo"
	ReasonSigAlgo    = "bad sig algo"
	ReasonInvalidID  = "invalid minion id"
	ReasonNotText    = "field is not printable text"
	ReasonTooManyKey = "too many map entries"
)

func refuse(reason, field string) error { return &Refused{Reason: reason, Field: field} }
