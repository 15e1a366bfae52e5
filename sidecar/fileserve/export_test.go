package fileserve

// Reread parses lists and writes them again.
func Reread(text []byte) ([]byte, error) {
	l, err := parseLists(text)
	if err != nil {
		return nil, err
	}
	return l.encodeLists(), nil
}

// Hashing says whether all places for large files are taken.
func (s *Server) Hashing() bool { return len(s.hashers) == cap(s.hashers) }
