package guides

import (
	"slices"
	"strings"
	"unicode"
)

// withoutComment cuts a shell's comment off.
func withoutComment(line string) string {
	quote := rune(0)
	for i, r := range line {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			}
		case r == '\'' || r == '"':
			quote = r
		case r == '#' && (i == 0 || line[i-1] == ' '):
			return strings.TrimSpace(line[:i])
		}
	}
	return strings.TrimSpace(line)
}

// Arguments returns what each call of the program in the line is given: it is looked for as a word, so that `ssh m2
// PROGRAM …` and `sudo PROGRAM …` count. Pipes, lists of commands and redirections end it.
func Arguments(line, program string) (calls [][]string) {
	words := split(line)
	for {
		i := slices.Index(words, program)
		if i < 0 {
			return calls
		}
		words = words[i+1:]
		n := slices.IndexFunc(words, func(w string) bool { return strings.HasPrefix(w, operator) })
		if n < 0 {
			n = len(words)
		}
		calls, words = append(calls, words[:n]), words[n:]
	}
}

// operator marks a word that is none.
const operator = "\x00"

// split takes a line of shell apart: words without their quotes, and operators.
func split(line string) (words []string) {
	var b strings.Builder
	quote, open := rune(0), false
	end := func() {
		if open {
			words = append(words, b.String())
		}
		b.Reset()
		open = false
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			b.WriteRune(r)
		case r == '\'' || r == '"':
			quote, open = r, true
		case r == ' ' || r == '\t':
			end()
		case strings.ContainsRune(";|&()<>", r) && !(r == '|' && open): // a|b are words to choose from
			end()
			words = append(words, operator+string(r))
		default:
			b.WriteRune(r)
			open = true
		}
	}
	end()
	return words
}

// Words returns how many words a page has: what stands between blanks and has a letter in it, blocks of code and tables
// included. Figures are not counted.
func (p Page) Words() (n int) {
	for _, word := range strings.Fields(p.text) {
		if strings.ContainsFunc(word, unicode.IsLetter) {
			n++
		}
	}
	return n
}
