package main

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
	plain  = ""
	bold   = "1"
	green  = "32"
	yellow = "33"
	red    = "31"
)

// screen collects what people read.
type screen struct {
	b      bytes.Buffer
	colour bool
	wide   bool // more than 80 columns
}

func wideFlag() cli.Flag {
	return &cli.BoolFlag{Name: "wide", Usage: "show more than fits into 80 columns"}
}

// fit cuts text to n characters unless the screen is wide.
func (s *screen) fit(text string, n int) string {
	if r := []rune(text); !s.wide && len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return text
}

// cell is one field of a table.
type cell struct {
	text  string
	tint  string
	right bool // align to the right
}

func txt(s string) cell {
	if s == "" {
		s = "-"
	}
	return cell{text: clean(s)}
}

func num[T int | uint64](n *T) cell {
	if n == nil {
		return cell{text: "-", right: true}
	}
	return cell{text: fmt.Sprint(*n), right: true}
}

func (c cell) withTint(tint string) cell {
	c.tint = tint
	return c
}

// printTable prints rows in aligned columns, two spaces apart, with an indent. The
// head is upper-case already.
func (s *screen) printTable(indent string, head []string, rows [][]cell) {
	all := make([][]cell, 0, len(rows)+1)
	if head != nil {
		first := make([]cell, len(head))
		for i, h := range head {
			first[i] = cell{text: h, tint: bold, right: len(rows) > 0 && rows[0][i].right}
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
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	for _, row := range all {
		s.printRow(indent, row, widths)
	}
}

func (s *screen) printRow(indent string, row []cell, widths []int) {
	var b strings.Builder
	b.WriteString(indent)
	for i, c := range row {
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text))
		if i > 0 {
			b.WriteString("  ")
		}
		if c.right {
			b.WriteString(pad)
		}
		b.WriteString(s.paint(c.tint, c.text))
		if !c.right && i < len(row)-1 {
			b.WriteString(pad)
		}
	}
	s.b.WriteString(strings.TrimRight(b.String(), " ") + "\n")
}

func (s *screen) line(format string, args ...any) {
	fmt.Fprintf(&s.b, format+"\n", args...)
}

func (s *screen) paint(tint, text string) string {
	if !s.colour || tint == plain || text == "" {
		return text
	}
	return "\x1b[" + tint + "m" + text + "\x1b[0m"
}

// clean keeps control characters of foreign text (a peer's version, an error)
// away from the terminal.
func clean(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strings.Trim(strconv.Quote(s), `"`)
	}
	return s
}

// formatStamp is a moment, the same on every host whatever its time zone.
func formatStamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }
