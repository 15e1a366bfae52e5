package fileserve_test

import (
	"testing"

	"saltclusterd/sidecar/fileserve"
)

// The answers are those of Python 3.11's re.search.
func TestExpressionsAreReadAsByPython(t *testing.T) {
	for _, c := range []struct {
		expr, name string
		want       bool
	}{
		{`/\.svn($|/)`, "a/.svn", true},
		{`/\.svn($|/)`, "a/.svn/b", true},
		{`/\.svn($|/)`, "a/.svnx", false},
		{`/\.svn($|/)`, ".svn", false},
		{`^top`, "top.sls", true},
		{`^top`, "a/top.sls", false},
		{`\Atop\.sls\Z`, "top.sls", true},
		{`a.c`, "aüc", true},
		{`a{2,3}b`, "aab", true},
		{`a{2,3}b`, "ab", false},
		{`[a-c]+$`, "xabc", true},
		{`[^a-c]$`, "xabc", false},
		{`[]x]`, "]", true},
		{`[[:alpha:]]`, "a", false}, // a set of [:alph, then ]
		{`[[:alpha:]]`, "a]", true},
		{`[a^]`, "^", true},
		{`(?:a|b)c`, "bc", true},
		{`\~$`, "file~", true},
		{`.*?\.tmp`, "x.tmp", true},
		{``, "x", true},
	} {
		re, err := fileserve.CompilePython(c.expr)
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		if got := re.MatchString(c.name); got != c.want {
			t.Errorf("%s finds %q: %v", c.expr, c.name, got)
		}
	}
}

func TestExpressionsLeftToPython(t *testing.T) {
	for _, expr := range []string{
		`\d+`, `\w`, `\bx`, `(?i)x`, `(?P<n>x)`, `(?=x)`, `(?!x)`, `(?<=x)y`, `(a)\1`, `a{,3}`, `a{`, `[\d]`, `[z-a]`, `(`, `)`, `*`, `a**`, `\`, `[a`, `a*+`,
	} {
		if re, err := fileserve.CompilePython(expr); err == nil {
			t.Errorf("%s was read as %s", expr, re)
		}
	}
}
