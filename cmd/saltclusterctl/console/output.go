package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
	"go.yaml.in/yaml/v3"
)

// formats are those of --out. All but table show the fields of package adminapi.
var Formats = []string{"table", "nested", "json", "yaml", "txt"}

// PrintValue writes v in the format asked for; table is called for people.
func (e *Env) PrintValue(c *cli.Context, v any, table func(*Screen)) error {
	format := c.String("out")
	if err := checkFormat(format); err != nil {
		return err
	}
	switch format {
	case "table":
		s := e.NewScreenOf(c)
		table(s)
		_, err := e.Stdout.Write(s.Bytes())
		return err
	case "json":
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		if err := enc.Encode(v); err != nil {
			return err
		}
		_, err := e.Stdout.Write(e.services.AdaptJSON(text.Bytes()))
		return err
	}
	n, err := e.toNode(v)
	if err != nil {
		return err
	}
	switch format {
	case "nested":
		s := e.NewScreen()
		printNested(s, n, 0, "")
		_, err = e.Stdout.Write(s.Bytes())
		return err
	case "txt":
		_, err = io.WriteString(e.Stdout, txtOut(n))
		return err
	default:
		return showYAML(e.Stdout, n)
	}
}

// checkFormat is called before anything is done.
func checkFormat(format string) error {
	if slices.Contains(Formats, format) {
		return nil
	}
	return Usagef("--out "+strings.Join(Formats, ", --out "), "%q is not an output format", format)
}

// toNode goes through JSON, which YAML can read, so that all formats have the same names in the same order.
func (e *Env) toNode(v any) (*yaml.Node, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode the answer: %w", err)
	}
	var n yaml.Node
	if err := yaml.Unmarshal(e.services.AdaptJSON(data), &n); err != nil {
		return nil, fmt.Errorf("turn the answer into YAML: %w", err)
	}
	if n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		return n.Content[0], nil
	}
	return &n, nil
}

func showYAML(w io.Writer, n *yaml.Node) error {
	blockStyle(n)
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(n); err != nil {
		return err
	}
	return enc.Close()
}

func blockStyle(n *yaml.Node) {
	if len(n.Content) > 0 || n.Kind == yaml.ScalarNode {
		n.Style = 0
	}
	for _, child := range n.Content {
		blockStyle(child)
	}
}
