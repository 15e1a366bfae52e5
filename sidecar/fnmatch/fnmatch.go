package fnmatch

import (
	"fmt"
	"regexp"
	"strings"
)

// Compile returns a regular expression that matches what glob does. It fails for a set that is none, such as [z-a].
func Compile(glob string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(translate(glob))
	if err != nil {
		return nil, fmt.Errorf("glob %q: %w", glob, err)
	}
	return re, nil
}

// translate turns a glob into a regular expression as Python's fnmatch.translate does.
func translate(glob string) string {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; c {
		case '*':
			b.WriteString(".*")
		case '?':
			b.WriteByte('.')
		case '[':
			set, n := bracket(glob[i+1:])
			b.WriteString(set)
			i += n
		default:
			j := i
			for j < len(glob) && !strings.ContainsRune("*?[", rune(glob[j])) {
				j++
			}
			b.WriteString(regexp.QuoteMeta(glob[i:j]))
			i = j - 1
		}
	}
	return b.String() + `\z`
}

// bracket reads what follows a '[': the set, and how many bytes of it belong to it.
func bracket(s string) (set string, n int) {
	from := 0
	if strings.HasPrefix(s, "!") {
		from = 1
	}
	if strings.HasPrefix(s[from:], "]") {
		from++
	}
	end := strings.IndexByte(s[from:], ']')
	if end < 0 {
		return `\[`, 0
	}
	end += from
	body := strings.NewReplacer(`\`, `\\`, `[`, `\[`, `]`, `\]`, `^`, `\^`).Replace(strings.TrimPrefix(s[:end], "!"))
	if strings.HasPrefix(s, "!") {
		return "[^" + body + "]", end + 1
	}
	return "[" + body + "]", end + 1
}
