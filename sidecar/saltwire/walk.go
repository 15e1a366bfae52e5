package saltwire

// pairs walks the entries of one msgpack map. It is a value on its caller's stack; a walk allocates nothing.
type pairs struct {
	rest  []byte
	left  int
	rules rules
}

// openMap starts a walk over raw, which must be a map.
func openMap(raw []byte, r rules) (pairs, error) {
	h, err := readHead(raw)
	if err != nil {
		return pairs{}, err
	}
	if h.kind != kindMap {
		return pairs{}, refuse(ReasonNotMap, "")
	}
	r.depth--
	return pairs{rest: raw[h.len:], left: h.size, rules: r}, nil
}

// nextPair returns the content of a key and the raw value, both aliasing the input. After the last entry ok is false,
// and err says whether anything followed the map.
func (p *pairs) nextPair() (key, value []byte, ok bool, err error) {
	if p.left == 0 {
		if len(p.rest) > 0 {
			return nil, nil, false, refuse(ReasonTrailing, "")
		}
		return nil, nil, false, nil
	}
	p.left--
	h, err := readHead(p.rest)
	if err != nil {
		return nil, nil, false, err
	}
	if h.kind != kindBytes {
		return nil, nil, false, refuse(ReasonKeyType, "")
	}
	key = p.rest[h.len : h.len+h.size]
	p.rest = p.rest[h.len+h.size:]
	after, err := skipValue(p.rest, p.rules)
	if err != nil {
		return nil, nil, false, err
	}
	value = p.rest[: len(p.rest)-len(after) : len(p.rest)-len(after)]
	p.rest = after
	return key, value, true, nil
}

// WalkMap calls visit with the content of each key and the raw msgpack of its value, in the order they stand, and
// checks the whole of raw: one map, string keys, nothing after it. It stops at visit's first error and returns it.
// Duplicate keys are visit's business. Both slices alias raw.
func WalkMap[V ~[]byte](raw []byte, visit func(key []byte, value V) error) error {
	it, err := openMap(raw, sealedRules)
	if err != nil {
		return err
	}
	for {
		key, value, ok, err := it.nextPair()
		if err != nil || !ok {
			return err
		}
		if err := visit(key, value); err != nil {
			return err
		}
	}
}

// WalkData is WalkMap for values that masters do not look into: keys may be numbers and the like, but visit is not
// called with those. A value that is not a map has no keys.
func WalkData[V ~[]byte](raw []byte, visit func(key []byte, value V)) error {
	h, err := readHead(raw)
	if err != nil || h.kind != kindMap {
		return err
	}
	r := sealedRules
	r.depth--
	rest := raw[h.len:]
	for range h.size {
		k, err := readHead(rest)
		if err != nil {
			return err
		}
		after, err := skipValue(rest, r)
		if err != nil {
			return err
		}
		left, err := skipValue(after, r)
		if err != nil {
			return err
		}
		if k.kind == kindBytes {
			visit(rest[k.len:k.len+k.size], V(after[:len(after)-len(left):len(after)-len(left)]))
		}
		rest = left
	}
	if len(rest) > 0 {
		return refuse(ReasonTrailing, "")
	}
	return nil
}

// WalkArray calls visit with the raw msgpack of each element of raw, which must be one array with nothing after it.
func WalkArray[V ~[]byte](raw []byte, visit func(value V) error) error {
	h, err := readHead(raw)
	if err != nil {
		return err
	}
	if h.kind != kindArray {
		return refuse(ReasonType, "")
	}
	r := sealedRules
	r.depth--
	rest := raw[h.len:]
	for range h.size {
		after, err := skipValue(rest, r)
		if err != nil {
			return err
		}
		if err := visit(rest[:len(rest)-len(after)]); err != nil {
			return err
		}
		rest = after
	}
	if len(rest) > 0 {
		return refuse(ReasonTrailing, "")
	}
	return nil
}

// seen remembers which of a message's known fields occurred, to refuse a second one: Python would take the last, and
// what was checked must be what it takes.
type seen uint64

func (s *seen) checkFirst(field uint, name string) error {
	if *s&(1<<field) != 0 {
		return refuse(ReasonDuplicate, name)
	}
	*s |= 1 << field
	return nil
}

// readText returns a string field of at most limit bytes as a copy.
func readText(value []byte, limit int, field string) (string, error) {
	b, err := readBlob(value, limit, field)
	return string(b), err
}

// readBlob returns a byte-string field of at most limit bytes; it aliases value.
func readBlob(value []byte, limit int, field string) ([]byte, error) {
	b, ok := Bytes(value)
	if !ok {
		return nil, refuse(ReasonType, field)
	}
	if len(b) > limit {
		return nil, refuse(ReasonSize, field)
	}
	return b, nil
}
