package guides

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// Page is a file in Markdown.
type Page struct {
	Name string // as docs/how-to/install.md
	text string
}

// NewPage is a page with this text.
func NewPage(name, text string) Page { return Page{name, text} }

// first are the pages that a reader begins with; the others follow by name.
var first = []string{"README.md", "docs/tutorial/quickstart.md", "docs/how-to/install.md"}

// Read returns all pages below the project's directory which operators read, in the order in which they do. Those of
// docs/dev are for developers, and are not among them.
func Read(root string) ([]Page, error) {
	names := append([]string{}, first...)
	below, err := docsNames(root)
	if err != nil {
		return nil, fmt.Errorf("read the guides: %w", err)
	}
	names = append(names, below...)
	for _, pattern := range []string{"*.md", "packaging/*/README.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			name, err := filepath.Rel(root, file)
			if err != nil {
				return nil, err
			}
			names = append(names, name)
		}
	}
	var pages []Page
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			continue
		}
		seen[name] = true
		raw, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return nil, fmt.Errorf("read the guides: %w", err)
		}
		pages = append(pages, Page{name, string(raw)})
	}
	return pages, nil
}

// docsNames returns the pages below docs, without those of docs/dev.
func docsNames(root string) (names []string, err error) {
	err = fs.WalkDir(os.DirFS(root), "docs", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == "docs/dev":
			return fs.SkipDir
		case path.Ext(name) == ".md":
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// Text returns the page as it is written.
func (p Page) Text() string { return p.text }

// block is one of code.
type block struct {
	line   int    // of its first line of code
	info   string // what follows the fence; empty for an indented one
	fenced bool
	lines  []string
}

// blocks returns the page's blocks of code, and its text with them blanked out.
func (p Page) blocks() (all []block, prose string) {
	var rest strings.Builder
	var open *block // fenced
	last := -2      // line of the last line of an indented block
	blank := true
	for i, line := range strings.Split(p.text, "\n") {
		info, fence := strings.CutPrefix(strings.TrimLeft(line, " "), "```")
		switch {
		case open != nil && fence:
			all = append(all, *open)
			open = nil
		case open != nil:
			open.lines = append(open.lines, line)
		case fence:
			open = &block{line: i + 2, info: strings.TrimSpace(info), fenced: true}
		case strings.HasPrefix(line, "    ") && (blank || last == i-1):
			if last != i-1 {
				all = append(all, block{line: i + 1})
			}
			b := &all[len(all)-1]
			b.lines, last = append(b.lines, line), i
		default:
			rest.WriteString(line)
		}
		rest.WriteString("\n")
		blank = strings.TrimSpace(line) == ""
	}
	return all, rest.String()
}

// Prose returns the page line by line without its code.
func (p Page) Prose() string {
	_, prose := p.blocks()
	return codeSpan.ReplaceAllStringFunc(prose, func(span string) string { return strings.Repeat("\n", strings.Count(span, "\n")) })
}

var (
	codeSpan = regexp.MustCompile("`[^`]+`")
	gap      = regexp.MustCompile(`\s{2,}`)
	wrapped  = regexp.MustCompile(`\s*\n\s*`)
)

// Code is a piece of a page that may be a command.
type Code struct {
	Page string
	Line int
	Text string // one line
}

func (c Code) String() string { return fmt.Sprintf("%s:%d: %s", c.Page, c.Line, c.Text) }

// Lines returns each line of the page's blocks of code, without what is said about it in a second column or behind a #.
func (p Page) Lines() (all []Code) {
	blocks, _ := p.blocks()
	for _, b := range blocks {
		whole := ""
		for i, line := range b.lines {
			line = strings.TrimSpace(line)
			if part, more := strings.CutSuffix(line, `\`); more {
				whole += part
				continue
			}
			line, whole = whole+line, ""
			if !b.fenced {
				line = gap.Split(line, 2)[0]
			}
			if line = withoutComment(line); line != "" {
				all = append(all, Code{p.Name, b.line + i, line})
			}
		}
	}
	return all
}

// Spans returns what stands in backquotes in the page's text.
func (p Page) Spans() (all []Code) {
	_, prose := p.blocks()
	for _, at := range codeSpan.FindAllStringIndex(prose, -1) {
		text := prose[at[0]+1 : at[1]-1]
		if strings.Contains(text, "\n\n") {
			continue // two backquotes of different paragraphs
		}
		all = append(all, Code{p.Name, strings.Count(prose[:at[0]], "\n") + 1, wrapped.ReplaceAllString(text, " ")})
	}
	return all
}
