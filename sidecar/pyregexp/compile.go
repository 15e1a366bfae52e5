package pyregexp

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Search compiles an expression for re.search.
func Search(expr string) (*regexp.Regexp, error) {
	var b strings.Builder
	b.WriteString("(?s)")
	for i, n, anchor := 0, 0, false; i < len(expr); i += n {
		if anchor && strings.IndexByte("*+?{", expr[i]) >= 0 {
			return nil, fmt.Errorf("%.4q: there is nothing to repeat", expr[i:]) // Go repeats an anchor, Python does not
		}
		var err error
		if n, err = onePython(&b, expr[i:]); err != nil {
			return nil, err
		}
		anchor = isAnchor(expr[i : i+n])
	}
	re, err := regexp.Compile(b.String())
	if err != nil {
		return nil, fmt.Errorf("not read here: %w", err)
	}
	return re, nil
}

// Match compiles an expression for re.match, which begins at the beginning.
func Match(expr string) (*regexp.Regexp, error) {
	re, err := Search(expr)
	if err != nil {
		return nil, err
	}
	if re, err = regexp.Compile(`\A(?:` + re.String() + ")"); err != nil { // (?s) counts to the end of the group
		return nil, fmt.Errorf("not read here: %w", err)
	}
	return re, nil
}

var repetition = regexp.MustCompile(`^\{[0-9]{1,3}(?:,(?:[0-9]{1,3})?)?\}`)

func isAnchor(item string) bool { return item == "^" || item == "$" || item == `\A` || item == `\Z` }

// onePython writes what stands first in expr, and tells how long that was.
func onePython(b *strings.Builder, expr string) (int, error) {
	switch c := expr[0]; c {
	case '\\':
		return escapePython(b, expr)
	case '^':
		b.WriteString(`\A`)
	case '$':
		b.WriteString(`\z`)
	case '.', '*', '+', '?', ')', '|':
		b.WriteByte(c)
	case '(':
		if strings.HasPrefix(expr, "(?") {
			if !strings.HasPrefix(expr, "(?:") {
				return 0, fmt.Errorf("%.4q is not read here", expr)
			}
			b.WriteString("(?:")
			return 3, nil
		}
		b.WriteString("(?:")
	case '{':
		m := repetition.FindString(expr)
		if m == "" {
			return 0, fmt.Errorf("%.4q is not read here", expr)
		}
		b.WriteString(m)
		return len(m), nil
	case '[':
		return setPython(b, expr)
	default:
		_, n := utf8.DecodeRuneInString(expr)
		b.WriteString(regexp.QuoteMeta(expr[:n]))
		return n, nil
	}
	return 1, nil
}

// escapePython takes a backslash and what it makes literal, or \A and \Z.
func escapePython(b *strings.Builder, expr string) (int, error) {
	if len(expr) < 2 {
		return 0, fmt.Errorf("it ends in a backslash")
	}
	switch c := expr[1]; {
	case c == 'A':
		b.WriteString(`\A`)
	case c == 'Z':
		b.WriteString(`\z`)
	case punctuation(c):
		b.WriteString(regexp.QuoteMeta(expr[1:2]))
	default:
		return 0, fmt.Errorf("%.2q is not read here", expr)
	}
	return 2, nil
}

func punctuation(c byte) bool {
	return c > ' ' && c < 0x7f && !('0' <= c && c <= '9') && !('a' <= c && c <= 'z') && !('A' <= c && c <= 'Z')
}

// setPython takes a set in brackets.
func setPython(b *strings.Builder, expr string) (int, error) {
	b.WriteByte('[')
	i := 1
	if i < len(expr) && expr[i] == '^' {
		b.WriteByte('^')
		i++
	}
	for first := true; i < len(expr); first = false {
		switch c := expr[i]; {
		case c == ']' && !first:
			b.WriteByte(']')
			return i + 1, nil
		case c == '\\':
			if i+1 >= len(expr) || !punctuation(expr[i+1]) {
				return 0, fmt.Errorf("%.4q is not read here", expr[i:])
			}
			b.WriteString(`\` + expr[i+1:i+2])
			i += 2
		case c == '[' || c == ']' || c == '^' || c == '&' || c == '~':
			b.WriteString(`\` + expr[i:i+1])
			i++
		default:
			_, n := utf8.DecodeRuneInString(expr[i:])
			b.WriteString(expr[i : i+n])
			i += n
		}
	}
	return 0, fmt.Errorf("a set is not closed")
}
