package pyregexp_test

import (
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/sidecar/pyregexp"
)

// The answers are those of Python 3.11's re.search.
func TestSearch_SameAsPython(t *testing.T) {
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
		{`(^)*a`, "xa", true},
		{`(?:$)+`, "xa", true},
		{`[$]*x`, "$$x", true},
		{`\^*x`, "^^x", true},
		{`[^^]*x$`, "^ax", true},
	} {
		re, err := pyregexp.Search(c.expr)
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		check.Equal(t, re.MatchString(c.name), c.want, c.expr, "finds", c.name)
	}
}

func TestExpressionsLeftToPython(t *testing.T) {
	for _, expr := range []string{
		`\d+`, `\w`, `\bx`, `(?i)x`, `(?P<n>x)`, `(?=x)`, `(?!x)`, `(?<=x)y`, `(a)\1`, `a{,3}`, `a{`, `[\d]`, `[z-a]`, `(`,
		`)`, `*`, `a**`, `\`, `[a`, `a*+`,
		`^*`, `$+`, `\A?`, `\Z*`, `^{2}`, `a|^*`, `(^*)`, `a$*?`, `(a|*)`, `(*)`, `|*`, `a{2}{3}`, `a+?+`, `a*??`,
	} {
		if re, err := pyregexp.Search(expr); err == nil {
			t.Errorf("%s was read as %s", expr, re)
		}
	}
}

// The answers are those of Python 3.11's re.match.
func TestMatchesAtTheBeginning(t *testing.T) {
	for _, c := range []struct {
		expr, name string
		want       bool
	}{
		{`web`, "web1", true},
		{`web`, "myweb", false},
		{`a|web`, "myweb", false},
		{`a|web`, "webx", true},
		{`web$`, "web1", false},
		{`.*`, "", true},
		{`.*b`, "aüb", true},
		{`^network\.`, "network.ip_addrs", true},
	} {
		re, err := pyregexp.Match(c.expr)
		if err != nil {
			t.Errorf("%s: %v", c.expr, err)
			continue
		}
		check.Equal(t, re.MatchString(c.name), c.want, c.expr, "matches", c.name)
	}
	for _, expr := range []string{`a)(b`, `)`, `\w`} {
		if re, err := pyregexp.Match(expr); err == nil {
			t.Errorf("%s was read as %s", expr, re)
		}
	}
}
