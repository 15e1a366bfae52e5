package saltwire

// Enc values. No other exists; see PROTOCOL.md §2.1.
const (
	EncClear = "clear"
	EncAES   = "aes"
)

// Envelope is the outer map of a request on 4506 (channel/client.py:AsyncReqChannel._package_load).
type Envelope struct {
	Enc        string // EncClear or EncAES
	Version    int    // payload version, 0 when absent
	HasVersion bool
	ID         string // minion id of an aes request; says whose session key seals the load
	Load       []byte // aes: the ciphertext; clear: the raw msgpack of the load map. Aliases the body.
	EncAlgo    string // for private replies; empty when absent
	SigAlgo    string
}
