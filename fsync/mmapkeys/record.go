package mmapkeys

// The states of minion keys, as the first byte of a value in the bank Keys.
const (
	Accepted byte = 1
	Pending  byte = 2
	Rejected byte = 3
)

// EncodeKey makes the value of a minion key.
func EncodeKey(state byte, pub string) []byte { return append([]byte{state}, pub...) }

// DecodeKey takes the value of a minion key apart. ok is false when it is none.
func DecodeKey(value []byte) (state byte, pub string, ok bool) {
	if len(value) < 2 || value[0] < Accepted || value[0] > Rejected {
		return 0, "", false
	}
	return value[0], string(value[1:]), true
}
