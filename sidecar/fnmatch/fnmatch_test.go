package fnmatch

import "testing"

// The answers are those of Python 3.11's fnmatch.fnmatchcase.
func TestMatches(t *testing.T) {
	for _, c := range []struct {
		glob, name string
		want       bool
	}{
		{"salt/beacon/*", "salt/beacon/web1/load/", true},
		{"salt/beacon/*", "salt/beacon", false},
		{"*", "", true},
		{"*", "two\nlines", true},
		{"web?", "web1", true},
		{"web?", "web", false},
		{"web[12]", "web2", true},
		{"web[!12]", "web2", false},
		{"web[1-3]", "web2", true},
		{"[]]", "]", true},
		{"[!]]", "]", false},
		{"[", "[", true},
		{"a.b", "axb", false},
		{`\*`, `\x`, true},
		{"", "", true},
		{"", "a", false},
	} {
		re, err := Compile(c.glob)
		if err != nil {
			t.Errorf("%q: %v", c.glob, err)
			continue
		}
		if got := re.MatchString(c.name); got != c.want {
			t.Errorf("%q matches %q: %v", c.glob, c.name, got)
		}
	}
	if _, err := Compile("[z-a]"); err == nil {
		t.Error("a range that is none was taken")
	}
}
