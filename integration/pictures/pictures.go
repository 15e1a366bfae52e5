package pictures

import (
	"fmt"
	"html"
	"strings"
)

const (
	cellWidth, cellHeight = 216, 104
	boxWidth, boxHeight   = 156, 58
	margin                = 14
	stepHeight            = 46
	lineHeight            = 15
)

// style has colours that can be read on the ground that each picture brings, in light and dark surroundings.
const style = `<style>
text { font: 13px sans-serif; fill: #1f2933; text-anchor: middle; }
.box { fill: #ffffff; stroke: #4f6b76; stroke-width: 1.5; }
.group { fill: #e8eef0; stroke: #b4c2c8; }
.arrow { stroke: #00796b; stroke-width: 1.8; fill: none; marker-end: url(#tip); }
.label { font-size: 12px; fill: #00574d; paint-order: stroke; stroke: #f5f7f8; stroke-width: 4px; }
.name { font-size: 12px; fill: #52626a; text-anchor: start; }
.time { font-weight: bold; text-anchor: end; }
.what { text-anchor: start; }
</style>
<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto-start-reverse">` +
	`<path d="M0 0 L10 5 L0 10 z" fill="#00796b"/></marker></defs>
`

type box struct{ column, row int }

func (b box) centre() (x, y int) {
	return margin + b.column*cellWidth + cellWidth/2, margin + b.row*cellHeight + cellHeight/2
}

// Draw returns the SVG of a text, and an error that names the line which it does not understand.
func Draw(text string) ([]byte, error) {
	var title string
	var back, front strings.Builder
	boxes, width, height, steps := map[string]box{}, 0, 0, 0
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		var err error
		switch verb {
		case "", "#":
		case "title":
			title = rest
		case "box":
			var b box
			var name, label string
			if name, label, err = place(rest, &b); err == nil {
				boxes[name] = b
				x, y := b.centre()
				fmt.Fprintf(&front, `<rect class="box" x="%d" y="%d" width="%d" height="%d" rx="6"/>`+"\n", x-boxWidth/2, y-boxHeight/2,
					boxWidth, boxHeight)
				front.WriteString(lines(label, "", x, y))
				width, height = max(width, x+cellWidth/2), max(height, y+cellHeight/2)
			}
		case "group":
			var c, r, w, h int
			at, label, _ := strings.Cut(rest, "x")
			if _, err = fmt.Sscanf(at+" "+label, "%d,%d %d %d", &c, &r, &w, &h); err == nil {
				_, label, _ = strings.Cut(label, " ")
				x, y := margin+c*cellWidth+6, margin+r*cellHeight+4
				fmt.Fprintf(&back, `<rect class="group" x="%d" y="%d" width="%d" height="%d" rx="8"/><text class="name" x="%d" y="%d">%s</text>`+"\n",
					x, y, w*cellWidth-12, h*cellHeight-8, x+8, y+14, html.EscapeString(label))
			}
		case "arrow":
			err = arrow(&front, boxes, rest)
		case "step":
			at, what, found := strings.Cut(rest, " | ")
			if !found {
				err = fmt.Errorf("a step is TIME | TEXT")
			}
			y := margin + steps*stepHeight + stepHeight/2
			fmt.Fprintf(&front, `<text class="time" x="130" y="%d">%s</text><circle cx="150" cy="%d" r="5" fill="#00796b"/>`+"\n", y+4,
				html.EscapeString(at), y)
			front.WriteString(lines(what, "what", 170, y))
			steps++
			width, height = 760, y+stepHeight/2
		default:
			err = fmt.Errorf("%q is not known", verb)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	if title == "" {
		return nil, fmt.Errorf("the picture has no title")
	}
	if steps > 1 {
		fmt.Fprintf(&back, `<path d="M150 %d V%d" stroke="#b4c2c8" stroke-width="2"/>`+"\n", margin+stepHeight/2, height-stepHeight/2)
	}
	width, height = width+margin, height+margin
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n<title>%s</title>\n%s"+
		`<rect width="100%%" height="100%%" rx="10" fill="#f5f7f8"/>`+"\n%s%s</svg>\n", width, height, width, height,
		html.EscapeString(title), style, back.String(), front.String()), nil
}

// place reads NAME COLUMN,ROW LABEL.
func place(rest string, b *box) (name, label string, err error) {
	fields := strings.SplitN(rest, " ", 3)
	if len(fields) != 3 {
		return "", "", fmt.Errorf("a box is NAME COLUMN,ROW LABEL")
	}
	_, err = fmt.Sscanf(fields[1], "%d,%d", &b.column, &b.row)
	return fields[0], fields[2], err
}

// lines are the lines of a label around y.
func lines(label, class string, x, y int) string {
	all := strings.Split(label, "|")
	var out strings.Builder
	for i, l := range all {
		fmt.Fprintf(&out, `<text class="%s" x="%d" y="%d">%s</text>`+"\n", class, x, y+5-(len(all)-1)*lineHeight/2+i*lineHeight,
			html.EscapeString(strings.TrimSpace(l)))
	}
	return out.String()
}

// arrow draws from the edge of one box to that of another.
func arrow(out *strings.Builder, boxes map[string]box, rest string) error {
	fields := strings.SplitN(rest, " ", 3)
	if len(fields) < 2 {
		return fmt.Errorf("an arrow is FROM TO LABEL")
	}
	from, ok := boxes[fields[0]]
	to, too := boxes[fields[1]]
	if !ok || !too {
		return fmt.Errorf("an arrow from %s to %s, which are not both there", fields[0], fields[1])
	}
	x1, y1 := from.centre()
	x2, y2 := to.centre()
	label := y1 == y2
	switch {
	case y1 == y2:
		x1, x2 = towards(x1, x2, boxWidth/2), towards(x2, x1, boxWidth/2)
	default:
		y1, y2 = towards(y1, y2, boxHeight/2), towards(y2, y1, boxHeight/2)
	}
	fmt.Fprintf(out, `<path class="arrow" d="M%d %d L%d %d"/>`+"\n", x1, y1, x2, y2)
	if len(fields) == 3 {
		y := (y1 + y2) / 2
		if label {
			y -= 12
		}
		out.WriteString(lines(fields[2], "label", (x1+x2)/2, y))
	}
	return nil
}

func towards(from, to, by int) int {
	if to < from {
		return from - by
	}
	return from + by
}
