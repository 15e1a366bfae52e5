package saltwire

// CutField returns the load without the field of that name, and all else of it as it was.
func CutField(plain []byte, name string) ([]byte, error) {
	it, err := openMap(plain, sealedRules)
	if err != nil {
		return nil, err
	}
	kept, entries := make([]byte, 0, len(plain)), 0
	for {
		entry := it.rest
		key, _, ok, err := it.nextPair()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		if string(key) != name {
			kept, entries = append(kept, entry[:len(entry)-len(it.rest)]...), entries+1
		}
	}
	return append(AppendMapHeader(make([]byte, 0, len(kept)+8), entries), kept...), nil
}
