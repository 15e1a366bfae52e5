package saltwire

// WithTrue returns the load of a request with one field more, which is True. Should the load have that field already,
// the last one counts, as Python reads it. Errors: *Refused.
func WithTrue(plain []byte, name string) ([]byte, error) {
	h, err := readHead(plain)
	if err != nil {
		return nil, err
	}
	if _, err := openMap(plain, sealedRules); err != nil {
		return nil, err
	}
	out := AppendMapHeader(make([]byte, 0, len(plain)+len(name)+8), h.size+1)
	out = append(out, plain[h.len:]...)
	return append(AppendRaw(out, name), 0xc3), nil
}
