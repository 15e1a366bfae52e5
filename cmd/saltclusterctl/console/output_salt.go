package console

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

const cyan = "36"

// printNested prints as Salt's outputter of that name does (salt/output/nested.py).
func printNested(s *Screen, n *yaml.Node, indent int, prefix string) {
	pad := strings.Repeat(" ", indent)
	switch n.Kind {
	case yaml.MappingNode:
		if indent > 0 {
			s.Line("%s%s", pad, s.Paint(cyan, "----------"))
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			s.Line("%s%s", pad, s.Paint(cyan, prefix+Clean(n.Content[i].Value)+":"))
			printNested(s, n.Content[i+1], indent+4, "")
		}
	case yaml.SequenceNode:
		for _, child := range n.Content {
			switch child.Kind {
			case yaml.MappingNode:
				s.Line("%s%s", pad, s.Paint(Green, "|_"))
				printNested(s, child, indent+2, "")
			case yaml.SequenceNode:
				s.Line("%s%s", pad, s.Paint(Green, "|_"))
				printNested(s, child, indent+2, "- ")
			default:
				printNested(s, child, indent, "- ")
			}
		}
	default:
		tint := Yellow
		if n.Tag == "!!str" {
			tint = Green
		}
		for i, line := range SplitLines(pyText(n)) {
			if i > 0 {
				prefix = strings.Repeat(" ", len(prefix))
			}
			s.Line("%s%s", pad, s.Paint(tint, prefix+Clean(line)))
		}
	}
}

// txtOut prints as Salt's outputter txt does (salt/output/txt_out.py): a line "key: value" for each.
func txtOut(n *yaml.Node) string {
	if n.Kind != yaml.MappingNode {
		return pyRepr(n) + "\n"
	}
	var b strings.Builder
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := Clean(n.Content[i].Value), n.Content[i+1]
		if value.Kind != yaml.ScalarNode || value.Tag != "!!str" {
			b.WriteString(key + ": " + Clean(pyRepr(value)) + "\n")
			continue
		}
		for _, line := range SplitLines(value.Value) {
			b.WriteString(key + ": " + Clean(line) + "\n")
		}
	}
	return b.String()
}

// SplitLines is Python's str.splitlines for what we show: an empty text has none.
func SplitLines(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// pyText is Python's str() of a scalar.
func pyText(n *yaml.Node) string {
	switch n.Tag {
	case "!!null":
		return "None"
	case "!!bool":
		if n.Value == "true" {
			return "True"
		}
		return "False"
	}
	return n.Value
}

// pyRepr is Python's repr().
func pyRepr(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		parts := make([]string, 0, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			parts = append(parts, pyString(n.Content[i].Value)+": "+pyRepr(n.Content[i+1]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case yaml.SequenceNode:
		parts := make([]string, 0, len(n.Content))
		for _, child := range n.Content {
			parts = append(parts, pyRepr(child))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	if n.Tag == "!!str" || n.Tag == "!!timestamp" {
		return pyString(n.Value)
	}
	return pyText(n)
}

// pyString quotes as Python does: with ' unless the text has one and no ".
func pyString(s string) string {
	quoted := strconv.Quote(s)
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		return quoted
	}
	quoted = strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
	return "'" + strings.ReplaceAll(quoted, "'", `\'`) + "'"
}
