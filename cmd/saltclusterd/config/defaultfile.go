package config

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

const defaultFileHead = `# saltclusterd: several stock salt-masters answer as one.
#
# Every option with its default, from the option table. An option marked "for
# example" has no default. saltclusterd.d/*.conf are read after this file, in
# the order of their names; a later value replaces an earlier one whole. An
# unknown option is an error. Check with:
# saltclusterctl config check
`

// DefaultFile renders the commented default file from the option table: no
// option is set in it.
func DefaultFile() []byte {
	var b strings.Builder
	b.WriteString(defaultFileHead)
	c, section := DefaultConfig(), ""
	for _, o := range Options() {
		if o.Section != section {
			section = o.Section
			fmt.Fprintf(&b, "\n\n##### %s %s\n", section, strings.Repeat("#", max(0, 66-len(section))))
		}
		b.WriteString("\n")
		for _, line := range wrapText(o.Doc, 76) {
			b.WriteString("# " + line + "\n")
		}
		value := o.Example
		if value != "" {
			b.WriteString("# For example:\n")
		} else {
			value = Flow(plainValue(o.currentValue(&c)))
		}
		fmt.Fprintf(&b, "#%s: %s\n", o.Name, value)
	}
	return []byte(b.String())
}

// Flow renders a value, as Show returns it, as YAML on one line.
func Flow(v any) string {
	if b, ok := v.(bool); ok { // as Salt's own files write it
		return map[bool]string{true: "True", false: "False"}[b]
	}
	var n yaml.Node
	if err := n.Encode(v); err != nil {
		return "''"
	}
	n.Style = yaml.FlowStyle
	out, err := yaml.Marshal(&n)
	if err != nil {
		return "''"
	}
	if s := strings.TrimSpace(string(out)); s != `""` {
		return s
	}
	return "''"
}

func wrapText(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
