package console

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterd/wording"
)

// Tints of a cell.
const (
	Plain  = ""
	Bold   = "1"
	Green  = "32"
	Yellow = "33"
	Red    = "31"
)

// Screen collects what people read.
type Screen struct {
	bytes.Buffer
	Colour bool
	Wide   bool // more than 80 columns
	// Columns is where lines are wrapped; zero: they are not.
	Columns int

	services wording.Services // that texts are about
}

// NewScreen returns an empty screen for what e writes to.
func (e *Env) NewScreen() *Screen {
	return &Screen{Colour: e.Colour, Columns: e.columns, services: e.services}
}

// NewScreenOf is NewScreen for a command that may have --wide.
func (e *Env) NewScreenOf(c *cli.Context) *Screen {
	s := e.NewScreen()
	if c.Bool("wide") {
		s.Wide, s.Columns = true, 0
	}
	return s
}

// WideFlag is the flag with which tables may be wider than 80 columns.
func WideFlag() cli.Flag {
	return &cli.BoolFlag{Name: "wide", Usage: "show more than fits into 80 columns, and do not wrap lines"}
}

// Cell is one field of a table.
type Cell struct {
	Text  string
	Tint  string
	Right bool // align to the right
	Cut   bool // may be shortened where the table would be too wide
}

// WithCut is the cell, which may be shortened where the table would be too wide.
func (c Cell) WithCut() Cell {
	c.Cut = true
	return c
}

// Txt is a cell with a text of others, "-" if it is empty.
func Txt(s string) Cell {
	if s == "" {
		s = "-"
	}
	return Cell{Text: Clean(s)}
}

// Num is a cell with a number, "-" if it is not known.
func Num[T int | uint64](n *T) Cell {
	if n == nil {
		return Cell{Text: "-", Right: true}
	}
	return Cell{Text: fmt.Sprint(*n), Right: true}
}

// WithTint is the cell in a colour.
func (c Cell) WithTint(tint string) Cell {
	c.Tint = tint
	return c
}

// PrintTable prints rows in aligned columns, two spaces apart, with an indent. The head is upper-case already. A table
// that is wider than the screen has its widest cells shortened that may be, and wraps the last column.
func (s *Screen) PrintTable(indent string, head []string, rows [][]Cell) {
	s.PrintNotedTable(indent, head, rows, nil)
}

// PrintNotedTable is PrintTable with a line below each row that has a note.
func (s *Screen) PrintNotedTable(indent string, head []string, rows [][]Cell, notes []string) {
	all := make([][]Cell, 0, len(rows)+1)
	if head != nil {
		first := make([]Cell, len(head))
		for i, h := range head {
			first[i] = Cell{Text: h, Tint: Bold, Right: len(rows) > 0 && rows[0][i].Right}
		}
		all = append(all, first)
	}
	all = append(all, rows...)
	var widths []int
	for _, row := range all {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			c.Text = s.services.Adapt(c.Text)
			row[i].Text = c.Text
			widths[i] = max(widths[i], utf8.RuneCountInString(c.Text))
		}
	}
	if s.Columns > 0 {
		s.shrinkColumns(utf8.RuneCountInString(indent), all, widths)
	}
	for i, row := range all {
		s.printRow(indent, row, widths)
		if n := i - (len(all) - len(rows)); n >= 0 && n < len(notes) && notes[n] != "" {
			s.Wrapped(indent+"  ", "%s", notes[n])
		}
	}
}

// leastCut is what is left of a cell that is shortened, in characters.
const leastCut = 6

// shrinkColumns makes the widest columns that may be shortened narrower until the table fits, or until none is left.
// The last column is wrapped, so that it needs no more than leastWrapped.
func (s *Screen) shrinkColumns(indent int, all [][]Cell, widths []int) {
	cut, last := make([]bool, len(widths)), len(widths)-1
	isWrapped := last > 0
	for _, row := range all {
		for i, c := range row {
			cut[i] = cut[i] || c.Cut
			isWrapped = isWrapped && (i < last || !c.Right && !c.Cut)
		}
	}
	for {
		total, widest := indent+2*last, -1
		for i, w := range widths {
			if i == last && isWrapped {
				w = min(w, leastWrapped)
			}
			total += w
			if cut[i] && w > leastCut && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if total <= s.Columns || widest < 0 {
			return
		}
		widths[widest]--
	}
}

// leastWrapped is the narrowest last column that is wrapped.
const leastWrapped = 20

func (s *Screen) printRow(indent string, row []Cell, widths []int) {
	var b strings.Builder
	b.WriteString(indent)
	at := utf8.RuneCountInString(indent)
	for i, c := range row {
		if r := []rune(c.Text); len(r) > widths[i] {
			c.Text = string(r[:widths[i]-1]) + "…"
		}
		if last := i == len(row)-1; last && !c.Right && i > 0 && s.Columns-at-2 >= leastWrapped {
			lines := wrapText(c.Text, s.Columns-at-2)
			b.WriteString("  " + s.Paint(c.Tint, lines[0]))
			for _, line := range lines[1:] {
				b.WriteString("\n" + strings.Repeat(" ", at+2) + s.Paint(c.Tint, line))
			}
			continue
		}
		at += widths[i]
		if i > 0 {
			at += 2
		}
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.Text))
		if i > 0 {
			b.WriteString("  ")
		}
		if c.Right {
			b.WriteString(pad)
		}
		b.WriteString(s.Paint(c.Tint, c.Text))
		if !c.Right && i < len(row)-1 {
			b.WriteString(pad)
		}
	}
	s.WriteString(strings.TrimRight(b.String(), " ") + "\n")
}

// Wrapped prints a line that begins with a head. Where it is too long for the screen it continues below the text after
// the head.
func (s *Screen) Wrapped(head, format string, args ...any) {
	text := s.services.Adapt(fmt.Sprintf(format, args...))
	hang := textWidth(head)
	if s.Columns == 0 || s.Columns-hang < leastWrapped {
		s.WriteString(head + text + "\n")
		return
	}
	lines := wrapText(text, s.Columns-hang)
	s.WriteString(head + strings.Join(lines, "\n"+strings.Repeat(" ", hang)) + "\n")
}

// wrapText breaks a text at spaces into lines of at most so many characters; a longer word is a line of its own. It
// keeps several spaces in a row, except where it breaks.
func wrapText(text string, width int) []string {
	var lines []string
	for textWidth(text) > width {
		end := -1 // of the last word that fits, or of the first one
		for i := 0; i < len(text); i++ {
			if text[i] != ' ' || i > 0 && text[i-1] == ' ' {
				continue
			}
			if end > 0 && textWidth(text[:i]) > width {
				break
			}
			if strings.Trim(text[:i], " ") != "" {
				end = i
			}
		}
		rest := ""
		if end > 0 {
			rest = strings.TrimLeft(text[end:], " ")
		}
		if rest == "" {
			break
		}
		lines = append(lines, text[:end])
		text = rest
	}
	return append(lines, text)
}

// textWidth counts the characters of a text that are seen: not those that colour it.
func textWidth(text string) int {
	n, escape := 0, false
	for _, r := range text {
		switch {
		case escape:
			escape = r != 'm'
		case r == '\x1b':
			escape = true
		default:
			n++
		}
	}
	return n
}

// Line prints a line.
func (s *Screen) Line(format string, args ...any) {
	fmt.Fprintf(s, format+"\n", args...)
}

// Paint is a text in a colour, where the screen has colours.
func (s *Screen) Paint(tint, text string) string {
	if !s.Colour || tint == Plain || text == "" {
		return text
	}
	return "\x1b[" + tint + "m" + text + "\x1b[0m"
}

// Clean keeps control characters of foreign text (a peer's version, an error)
// away from the terminal.
func Clean(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strings.Trim(strconv.Quote(s), `"`)
	}
	return s
}

// FormatStamp is a moment, the same on every host whatever its time zone.
func FormatStamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// PrintMissing names the nodes that an answer is without.
func (s *Screen) PrintMissing(nodes []string) {
	if len(nodes) > 0 {
		s.Wrapped("", "%s", s.Paint(Yellow, "no answer from "+Clean(strings.Join(nodes, ", "))))
	}
}
