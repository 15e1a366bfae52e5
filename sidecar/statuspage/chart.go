package statuspage

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// slice is a node's part of the ring as a picture has it.
type slice struct {
	Node    string
	Percent string
	Path    string // of an SVG path in a square of ringSize
	Colour  int    // class c0 to c7
	Note    string // why it has none
}

const (
	ringSize = 200.0
	ringOut  = 96.0
	ringIn   = 58.0
	colours  = 8
)

// ringSlices draws shares, which are parts of 1, clockwise from the top.
func ringSlices(nodes []string, shares []float64) []slice {
	out := make([]slice, 0, len(nodes))
	at := 0.0
	for i, id := range nodes {
		share := shares[i]
		s := slice{Node: id, Percent: fmt.Sprintf("%.1f %%", 100*share), Colour: i % colours}
		if share > 0 {
			s.Path = arcPath(at, min(share, 1))
			at += share
		}
		out = append(out, s)
	}
	return out
}

// arcPath is a part of the ring.
func arcPath(from, share float64) string {
	if share > 0.9999 { // an arc that ends where it begins is none
		return arcPath(0, 0.5) + " " + arcPath(0.5, 0.5)
	}
	point := func(turn, r float64) string {
		a := 2*math.Pi*turn - math.Pi/2
		return fmt.Sprintf("%.2f %.2f", ringSize/2+r*math.Cos(a), ringSize/2+r*math.Sin(a))
	}
	large := 0
	if share > 0.5 {
		large = 1
	}
	return fmt.Sprintf("M%s A%g %g 0 %d 1 %s L%s A%g %g 0 %d 0 %s Z", point(from, ringOut), ringOut, ringOut, large,
		point(from+share, ringOut),
		point(from+share, ringIn), ringIn, ringIn, large, point(from, ringIn))
}

// curve is a line over time as a picture has it.
type curve struct {
	Name, Doc, Now, Most string
	Line, Area           string // of an SVG path in curveWidth × curveHeight
	Text                 string // the same in words
}

const (
	curveWidth  = 240.0
	curveHeight = 60.0
)

// curveOf draws a line; what is before the program was started is left empty.
func curveOf(l Line) curve {
	c := curve{Name: l.Name, Doc: l.Doc}
	if len(l.Points) == 0 {
		c.Text = "no data yet: one point every half minute"
		return c
	}
	unit := "/s"
	if l.Level {
		unit = ""
	}
	most := slices.Max(l.Points)
	c.Now, c.Most = formatAmount(l.Points[len(l.Points)-1])+unit, formatAmount(most)+unit
	c.Text = fmt.Sprintf("%s now, %s at most", c.Now, c.Most)
	scale := most
	if scale == 0 {
		scale = 1
	}
	var b strings.Builder
	x := func(i int) float64 { return curveWidth * float64(steps-len(l.Points)+i) / float64(steps-1) }
	for i, p := range l.Points {
		word := "L"
		if i == 0 {
			word = "M"
		}
		fmt.Fprintf(&b, "%s%.1f %.1f", word, x(i), curveHeight-1-(curveHeight-4)*p/scale)
	}
	c.Line = b.String()
	c.Area = fmt.Sprintf("%sL%.1f %gL%.1f %gZ", c.Line, x(len(l.Points)-1), curveHeight, x(0), curveHeight)
	return c
}

// formatAmount is a number as short as it can be read.
func formatAmount(v float64) string {
	switch {
	case v >= 10000:
		return fmt.Sprintf("%.0fk", v/1000)
	case v >= 100 || v == math.Trunc(v):
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
