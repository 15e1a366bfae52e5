package console

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
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
}

// NewScreen returns an empty screen for what e writes to.
func (e *Env) NewScreen() *Screen { return &Screen{Colour: e.Colour} }

// WideFlag is the flag with which tables may be wider than 80 columns.
func WideFlag() cli.Flag {
	return &cli.BoolFlag{Name: "wide", Usage: "show more than fits into 80 columns"}
}

// Fit cuts text to n characters unless the screen is wide.
func (s *Screen) Fit(text string, n int) string {
	if r := []rune(text); !s.Wide && len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return text
}

// Cell is one field of a table.
type Cell struct {
	Text  string
	Tint  string
	Right bool // align to the right
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

// PrintTable prints rows in aligned columns, two spaces apart, with an indent. The
// head is upper-case already.
func (s *Screen) PrintTable(indent string, head []string, rows [][]Cell) {
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
			widths[i] = max(widths[i], utf8.RuneCountInString(c.Text))
		}
	}
	for _, row := range all {
		s.printRow(indent, row, widths)
	}
}

func (s *Screen) printRow(indent string, row []Cell, widths []int) {
	var b strings.Builder
	b.WriteString(indent)
	for i, c := range row {
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
		s.Line("%s", s.Paint(Yellow, "no answer from "+Clean(strings.Join(nodes, ", "))))
	}
}
