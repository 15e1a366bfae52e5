package main

import (
	"encoding/json"
	"fmt"

	"github.com/urfave/cli/v2"
	"go.yaml.in/yaml/v3"
)

// show writes v in the format asked for; table is called for people.
func (e *env) show(c *cli.Context, v any, table func(*screen)) error {
	switch format := c.String("out"); format {
	case "table":
		s := &screen{colour: e.colour}
		table(s)
		_, err := e.stdout.Write(s.b.Bytes())
		return err
	case "json":
		enc := json.NewEncoder(e.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	case "yaml":
		return e.showYAML(v)
	default:
		return checkFormat(format)
	}
}

// checkFormat is called before anything is done.
func checkFormat(format string) error {
	switch format {
	case "table", "json", "yaml":
		return nil
	}
	return usagef("--out table, --out json or --out yaml", "%q is not an output format", format)
}

// showYAML goes through JSON, which YAML can read, so that both have the same
// names in the same order.
func (e *env) showYAML(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	var n yaml.Node
	if err := yaml.Unmarshal(data, &n); err != nil {
		return fmt.Errorf("turn the answer into YAML: %w", err)
	}
	blockStyle(&n)
	enc := yaml.NewEncoder(e.stdout)
	enc.SetIndent(2)
	if err := enc.Encode(&n); err != nil {
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
