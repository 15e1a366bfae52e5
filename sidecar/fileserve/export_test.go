package fileserve

import "regexp"

// Reread parses lists and writes them again.
func Reread(text []byte) ([]byte, error) {
	l, err := parseLists(text)
	if err != nil {
		return nil, err
	}
	return l.encode(), nil
}

// CompilePython is compilePython.
func CompilePython(expr string) (*regexp.Regexp, error) { return compilePython(expr) }

// RealPath is realPath.
func RealPath(name string) string { return realPath(name) }
