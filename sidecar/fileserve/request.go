package fileserve

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"saltclusterd/sidecar/saltwire"
)

// ErrForward means that the request belongs to the salt-master.
var ErrForward = errors.New("the salt-master has to answer")

// Commands are those that are answered here, if any are.
var Commands = []string{
	"_serve_file", "_file_hash", "_file_hash_and_stat", "_file_find", "_file_list", "_dir_list", "_file_list_emptydirs",
	"_symlink_list", "_file_envs",
}

// Is says whether a command is one of Commands.
func Is(cmd string) bool {
	for _, c := range Commands {
		if c == cmd {
			return true
		}
	}
	return false
}

const (
	maxText = 4096 // of a path or an environment; no file system has longer paths
	maxGzip = 9

	// maxNames bounds the backends that a list may name. Each takes many times its size here, and a load may be as large
	// as any request.
	maxNames = 256
)

// Load is what the file server reads of a load. Texts are copies.
type Load struct {
	Path, Env, Prefix          string
	HasPath, HasEnv, HasPrefix bool

	Loc    int64
	HasLoc bool
	Gzip   int // 0: not compressed

	Backends, Back chosen // of lists; of environments
}

// chosen is what a request says of backends: all (nothing is said), those it names, or all but those it names.
type chosen struct {
	names []string
	minus bool
}

// includesRoots says whether the roots backend is asked, where it is the only one (Fileserver.backends). A stock master
// that is told to leave one out does so for ever; here it is for this request.
func (c chosen) includesRoots() bool {
	return len(c.names) == 0 || c.minus != slices.Contains(c.names, rootsBackend)
}

// parseChoice reads a list of backends, with commas or as a list.
func parseChoice(value []byte) (c chosen, ok bool) {
	if isNil(value) {
		return c, true
	}
	if s, ok := pyText(value); ok {
		if s == "" {
			return c, true
		}
		c.names = strings.Split(s, ",")
	} else if err := saltwire.WalkArray(value, func(v []byte) error {
		s, ok := pyText(v)
		if !ok || len(c.names) == maxNames {
			return ErrForward
		}
		c.names = append(c.names, s)
		return nil
	}); err != nil {
		return c, false
	}
	c.minus = len(c.names) > 0
	for _, n := range c.names {
		c.minus = c.minus && strings.HasPrefix(n, "-")
	}
	if c.minus {
		for i, n := range c.names {
			c.names[i] = n[1:]
		}
	}
	return c, true
}

// fields that may stand once.
const (
	fieldPath uint = 1 << iota
	fieldEnv
	fieldLoc
	fieldGzip
	fieldPrefix
	fieldBackends
	fieldBack
)

// ParseLoad reads the load of a request. What it does not know is passed over, as a stock master does. Errors:
// ErrForward for everything whose meaning would have to be guessed.
func ParseLoad(plain []byte) (Load, error) {
	var l Load
	var seen uint
	err := saltwire.WalkMap(plain, func(key, value []byte) error {
		field, ok := uint(0), true
		switch string(key) {
		case "path":
			field, l.HasPath = fieldPath, true
			l.Path, ok = pyText(value)
		case "saltenv":
			field, l.HasEnv = fieldEnv, true
			l.Env, ok = pyText(value)
		case "prefix":
			field, l.HasPrefix = fieldPrefix, true
			l.Prefix, ok = pyText(value)
		case "loc":
			field, l.HasLoc = fieldLoc, true
			l.Loc, ok = saltwire.Int(value)
			ok = ok && l.Loc >= 0
		case "gzip":
			field = fieldGzip
			l.Gzip, ok = gzipLevel(value)
		case "fsbackend":
			field = fieldBackends
			l.Backends, ok = parseChoice(value)
		case "back":
			field = fieldBack
			l.Back, ok = parseChoice(value)
		case "sources":
			ok = isNil(value)
		}
		if !ok || seen&field != 0 {
			return ErrForward
		}
		seen |= field
		return nil
	})
	if err != nil {
		return Load{}, ErrForward
	}
	return l, nil
}

// pyText returns a string that Python would see as one.
func pyText(value []byte) (string, bool) {
	b, ok := saltwire.Bytes(value)
	if !ok || len(b) > maxText || !utf8.Valid(b) {
		return "", false
	}
	return string(b), true
}

// gzipLevel reads gzip: absent, None and False mean no compression.
func gzipLevel(value []byte) (int, bool) {
	if isNil(value) {
		return 0, true
	}
	if b, ok := saltwire.Bool(value); ok {
		return 0, !b
	}
	n, ok := saltwire.Int(value)
	return int(n), ok && n >= 0 && n <= maxGzip
}

func isNil(value []byte) bool { return len(value) == 1 && value[0] == 0xc0 }

// plainPath says whether Fileserver.find_file takes a path as it stands: no query, no escape, nothing that a URL parser
// might take for a scheme, no control characters (which that parser leaves out).
func plainPath(p string) bool {
	if p == "" {
		return true
	}
	if p[0] == ' ' || p[0] == '|' {
		return false
	}
	for i := range len(p) {
		switch c := p[i]; {
		case c < 0x20, c == 0x7f, c == '?':
			return false
		case c == ':' && hasScheme(p[:i], p[i+1:]):
			return false
		}
	}
	return true
}

// hasScheme says whether what stands around the first colon could be read as a URL whose scheme matters: salt, or one
// with a host, which is looked at and may be refused.
func hasScheme(before, after string) bool {
	return len(before) == 4 && lowerASCII(before) == "salt" || len(after) > 1 && after[:2] == "//"
}

func lowerASCII(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
