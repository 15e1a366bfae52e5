package saltwire

// FirstArg returns the first argument of a publication's function when it is text, such as the jid that find_job asks
// for.
func FirstArg(plain []byte) (arg string) {
	err := WalkMap(plain, func(key, value []byte) error {
		if string(key) != "arg" {
			return nil
		}
		first := true
		return WalkArray(value, func(v []byte) error {
			if b, ok := Bytes(v); ok && first && len(b) <= maxName {
				arg = string(b)
			}
			first = false
			return nil
		})
	})
	if err != nil {
		return ""
	}
	return arg
}
