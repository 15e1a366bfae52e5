package saltwire

// ReplaceValue returns a copy of the map raw in which the field name has another value; the rest is unchanged, byte for
// byte. A field that is there twice, of which Python reads the last one, is replaced twice. Errors: *Refused.
func ReplaceValue(raw []byte, name string, value []byte) ([]byte, error) {
	it, err := openMap(raw, sealedRules)
	if err != nil {
		return nil, err
	}
	out, copied := make([]byte, 0, len(raw)+len(value)), 0
	for {
		key, old, ok, err := it.nextPair()
		if err != nil {
			return nil, err
		}
		if !ok {
			return append(out, raw[copied:]...), nil
		}
		if string(key) == name {
			end := len(raw) - len(it.rest)
			out = append(append(out, raw[copied:end-len(old)]...), value...)
			copied = end
		}
	}
}
