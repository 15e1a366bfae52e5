package zmtp

// GreetingSize is the number of bytes in a greeting.
const GreetingSize = 64

const (
	greetingMajor     = 10 // offset of the major version
	greetingMinor     = 11
	greetingMechanism = 12 // 20 bytes, zero padded
	greetingAsServer  = 32
)

// AppendGreeting appends the greeting of a 3.1 peer with the NULL mechanism.
// The eight bytes between the signature's ends, which ZMTP 1 would read as a
// length, are those libzmq sends.
func AppendGreeting(dst []byte) []byte {
	var g [GreetingSize]byte
	g[0], g[8], g[9] = 0xff, 1, 0x7f
	g[greetingMajor], g[greetingMinor] = 3, 1
	copy(g[greetingMechanism:], "NULL")
	return append(dst, g[:]...)
}

// checkGreeting looks at the first len(g) bytes of a greeting, so that a peer
// of another protocol is told from its first byte on and not after 64.
func checkGreeting(g []byte) error {
	for i, b := range g {
		switch {
		case i == 0 && b != 0xff,
			i == 9 && b != 0x7f,
			i == greetingMajor && b < 3:
			return ErrNotZMTP
		case i >= greetingMechanism && i < greetingAsServer:
			var want byte
			if k := i - greetingMechanism; k < len("NULL") {
				want = "NULL"[k]
			}
			if b != want {
				return ErrMechanism
			}
		}
	}
	return nil
}
