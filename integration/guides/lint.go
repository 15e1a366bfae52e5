package guides

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	heading  = regexp.MustCompile(`^#{1,6} `)
	listItem = regexp.MustCompile(`^ *([-*]|[0-9]+\.) `)
	tableRow = regexp.MustCompile(`^\s*\|`)
	notRun   = regexp.MustCompile(`<!-- not run: [^>]{3,} -->`)
	comment  = regexp.MustCompile(`^\s*<!--`)
	dated    = regexp.MustCompile(`^20\d\d-`) // when something was measured
)

// minDouble is how long a line of prose is, in bytes, that must not stand on a page twice.
const minDouble = 60

// Glued returns where the page's structure is damaged: a fence that is never closed, a heading, list, table or block of
// code without the blank line that separates it from the text around it, and a line of prose that stands twice, as a
// paste that went wrong leaves it.
func (p Page) Glued() (all []string) {
	fault := func(line int, what string) { all = append(all, fmt.Sprintf("%s:%d: %s", p.Name, line, what)) }
	blocks, _ := p.blocks()
	kinds := p.kinds(blocks)
	seen := map[string]int{}
	lines := strings.Split(p.text, "\n")
	fences := 0
	for i, line := range lines {
		kind := kinds[i]
		if strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
			fences++
		}
		if kind == proseLine && len(line) >= minDouble && !dated.MatchString(line) {
			if first, twice := seen[line]; twice {
				fault(i+1, fmt.Sprintf("the same line as %d", first))
			}
			seen[line] = i + 1
		}
		if i == 0 {
			continue
		}
		if before := kinds[i-1]; before != kind && before != blankLine && kind != blankLine && !joined(before, kind) {
			fault(i+1, fmt.Sprintf("no blank line between %s and %s", before, kind))
		}
	}
	if fences%2 != 0 {
		fault(len(lines), "a block of code is not closed")
	}
	return all
}

// lineKind is what a line of a page belongs to.
type lineKind string

const (
	blankLine   lineKind = "nothing"
	proseLine   lineKind = "a paragraph"
	headingLine lineKind = "a heading"
	listLine    lineKind = "a list"
	tableLine   lineKind = "a table"
	fenceLine   lineKind = "the fence of a block"
	codeLine    lineKind = "a block of code"
	commentLine lineKind = "a comment"
)

// joined says whether a line of one kind may directly follow one of another kind.
func joined(before, kind lineKind) bool {
	switch {
	case before == fenceLine && kind == codeLine, before == codeLine && kind == fenceLine:
		return true
	case before == commentLine || kind == commentLine:
		return true
	}
	return false
}

// kinds returns the kind of each line. A line that continues an item of a list belongs to the list.
func (p Page) kinds(blocks []block) []lineKind {
	lines := strings.Split(p.text, "\n")
	kinds := make([]lineKind, len(lines))
	for _, b := range blocks {
		for i := range b.lines {
			kinds[b.line-1+i] = codeLine
		}
		if b.fenced {
			kinds[b.line-2] = fenceLine
			kinds[min(b.line-1+len(b.lines), len(lines)-1)] = fenceLine
		}
	}
	for i, line := range lines {
		switch before := lineKind(""); {
		case kinds[i] != "":
		case strings.TrimSpace(line) == "":
			kinds[i] = blankLine
		case heading.MatchString(line):
			kinds[i] = headingLine
		case tableRow.MatchString(line):
			kinds[i] = tableLine
		case comment.MatchString(line):
			kinds[i] = commentLine
		case listItem.MatchString(line):
			kinds[i] = listLine
		default:
			if i > 0 {
				before = kinds[i-1]
			}
			kinds[i] = proseLine
			if before == listLine || strings.HasPrefix(line, "  ") {
				kinds[i] = listLine
			}
		}
	}
	return kinds
}

// Unmarked returns the sections with commands of saltclusterctl in a block of code of which no block is runnable and
// that do not say why: by a comment "not run: REASON", in the section or once before the first of them for the page.
func (p Page) Unmarked() (all []string) {
	lines := strings.Split(p.text, "\n")
	commands := map[int]string{}
	for _, c := range p.Lines() {
		if len(Arguments(c.Text, "saltclusterctl")) > 0 {
			commands[c.Line-1] = c.Text
		}
	}
	start, title, command, marked := 0, "", "", false
	if intro, _, _ := strings.Cut(p.text, "\n## "); notRun.MatchString(intro) {
		return nil
	}
	flush := func(end int) {
		if command != "" && !marked {
			all = append(all, fmt.Sprintf("%s:%d: %s: no block is runnable, and no comment says why: %s",
				p.Name, start+1, title, command))
		}
		start, command, marked = end, "", false
	}
	kinds := p.kinds(func() []block { b, _ := p.blocks(); return b }())
	for i, line := range lines {
		if kinds[i] == headingLine {
			flush(i)
			title = strings.TrimLeft(line, "# ")
		}
		if c := commands[i]; c != "" && command == "" {
			command = c
		}
		marked = marked || strings.Contains(line, "runnable=") || notRun.MatchString(line)
	}
	flush(len(lines))
	return all
}
