package manual

import (
	"bytes"
	"fmt"
	"strings"
)

// Page is a manual page being written.
type Page struct{ b bytes.Buffer }

// New begins the page name(section); short is its one line for whatis(1), source the package and its version.
func New(name string, section int, source, short string) *Page {
	p := &Page{}
	fmt.Fprintf(&p.b, ".TH %s %d \"\" %s %s\n", quoteText(strings.ToUpper(name)), section, quoteText(source),
		quoteText("saltclusterd"))
	p.b.WriteString(".nh\n.ad l\n") // names of options are not to be cut, nor lines filled with blanks
	p.Heading("NAME")
	p.b.WriteString(escapeText(name) + ` \- ` + escapeText(short) + "\n")
	return p
}

// Bytes is the page so far.
func (p *Page) Bytes() []byte { return p.b.Bytes() }

// Heading begins a section.
func (p *Page) Heading(title string) { p.b.WriteString(".SH " + quoteText(title) + "\n") }

// Sub begins a subsection.
func (p *Page) Sub(title string) { p.b.WriteString(".SS " + quoteText(title) + "\n") }

// Text is a paragraph; lines of the text are joined.
func (p *Page) Text(text string) { p.b.WriteString(".PP\n" + fillLine(text)) }

// Bold is a paragraph of its own in bold, such as a command to type.
func (p *Page) Bold(text string) { p.b.WriteString(".PP\n.B " + quoteText(text) + "\n") }

// Item is a term in bold, a placeholder after it in italics, and what it means.
func (p *Page) Item(term, placeholder, text string) {
	p.b.WriteString(".TP\n\\fB" + escapeText(term) + "\\fR")
	if placeholder != "" {
		p.b.WriteString(" \\fI" + escapeText(placeholder) + "\\fR")
	}
	p.b.WriteString("\n")
	if strings.TrimSpace(text) == "" {
		text = " "
	}
	p.b.WriteString(fillLine(text))
}

// Under continues an item with another paragraph.
func (p *Page) Under(text string) { p.b.WriteString(".IP\n" + fillLine(text)) }

// Lines are printed as they are.
func (p *Page) Lines(lines ...string) {
	p.b.WriteString(".PP\n.RS 4\n.nf\n")
	for _, l := range lines {
		p.b.WriteString(escapeText(l) + "\n")
	}
	p.b.WriteString(".fi\n.RE\n")
}

// fillLine is text for filling: one line, which is never taken for a request.
func fillLine(text string) string {
	text = escapeText(strings.Join(strings.Fields(text), " "))
	if text == "" {
		return "\\&\n"
	}
	return text + "\n"
}

// escapeText makes plain text of whatever it is given.
func escapeText(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, "\t", "    ",
		"\n", " ").Replace(text)
	var b strings.Builder
	for i, r := range text {
		switch {
		case i == 0 && r == '.':
			b.WriteString(`\&.`)
		case r < ' ' || r == 0x7f:
		case r < 0x80:
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, `\[u%04X]`, r)
		}
	}
	return b.String()
}

// quoteText is text as one argument of a request.
func quoteText(text string) string {
	return `"` + strings.ReplaceAll(escapeText(text), `"`, `\(dq`) + `"`
}
