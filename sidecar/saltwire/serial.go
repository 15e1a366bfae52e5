package saltwire

// SetSerial appends to dst the load of a publication with serial in it: in place of the one it has, or as a further
// entry at the end. Every other byte stays as it is. plain must be a map as PeekPub accepts it; dst must not overlap
// it. Errors: *Refused, with dst unchanged.
func SetSerial(dst, plain []byte, serial uint64) ([]byte, error) {
	it, err := openMap(plain, sealedRules)
	if err != nil {
		return dst, err
	}
	entries, first := it.left, len(plain)-len(it.rest)
	from, to := -1, -1 // where the present value stands
	for {
		key, value, ok, err := it.nextPair()
		if err != nil {
			return dst, err
		}
		if !ok {
			break
		}
		if string(key) != "serial" {
			continue
		}
		if from >= 0 {
			return dst, refuse(ReasonDuplicate, "serial")
		}
		to = len(plain) - len(it.rest)
		from = to - len(value)
	}
	if from >= 0 {
		dst = AppendUint(append(dst, plain[:from]...), serial)
		return append(dst, plain[to:]...), nil
	}
	dst = AppendMapHeader(dst, entries+1)
	dst = append(dst, plain[first:]...)
	return AppendUint(AppendRaw(dst, "serial"), serial), nil
}
