package config

import (
	"fmt"
	"net/netip"
	"time"

	"go.yaml.in/yaml/v3"
)

// A mistake is what is wrong with a YAML node, without its place.
type mistake struct {
	node      *yaml.Node
	msg, hint string
}

// setValue stores the node's value in the option's place. A null leaves what was
// there, as Salt's own None does.
func (o Option) setValue(c *Config, n *yaml.Node) *mistake {
	n = resolveAlias(n)
	if n.ShortTag() == "!!null" {
		return nil
	}
	switch p := o.field(c).(type) {
	case *string:
		return decodeText(n, p)
	case *Secret:
		return decodeSecret(n, p)
	case *int:
		return decodeScalar(n, p, "!!int", "a whole number")
	case *bool:
		return decodeBool(n, p)
	case *Size:
		return decodeParsed(n, p, ParseSize, "a size such as 64MiB")
	case *time.Duration:
		return decodeParsed(n, p, parseDuration, "a duration: seconds, or as 1m30s")
	case *[]string:
		return decodeList(n, p, decodeText)
	case *[]netip.Prefix:
		return decodeList(n, p, decodeNetwork)
	case *map[string][]netip.Prefix:
		return networksByName(n, p)
	case *map[string]string:
		return wordsByName(n, p)
	case *[]TagRule:
		return tagRules(n, p)
	default:
		return &mistake{node: n, msg: "cannot be set in a file"}
	}
}

// resolveAlias resolves an alias. A node that contains itself cannot be built: every
// decoder below descends a fixed number of levels.
func resolveAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// decodeText takes a scalar as it is written: an id of digits stays one. Booleans
// are refused, for "yes" and "no" are written without that thought.
func decodeText(n *yaml.Node, p *string) *mistake {
	n = resolveAlias(n)
	switch tag := n.ShortTag(); {
	case n.Kind != yaml.ScalarNode:
		return &mistake{node: n, msg: "is " + kindName(n) + ", but must be text"}
	case tag == "!!bool" || tag == "!!null":
		return &mistake{node: n, msg: fmt.Sprintf("%s is not text", n.Value),
			hint: "write it in quotes if that is what you mean"}
	}
	*p = n.Value
	return nil
}

func decodeSecret(n *yaml.Node, p *Secret) *mistake {
	var s string
	if n.Kind != yaml.ScalarNode { // text() would quote it
		return &mistake{node: n, msg: "is " + kindName(n) + ", but must be text"}
	}
	s = n.Value
	*p = NewSecret(s)
	return nil
}

func decodeScalar[T any](n *yaml.Node, p *T, tag, what string) *mistake {
	var v T
	if n.Kind != yaml.ScalarNode || n.ShortTag() != tag || n.Decode(&v) != nil {
		return &mistake{node: n, msg: describeNode(n) + " is not " + what}
	}
	*p = v
	return nil
}

// decodeBool also takes yes, no, on and off, as Salt's YAML does.
func decodeBool(n *yaml.Node, p *bool) *mistake {
	var v bool
	if n.Kind != yaml.ScalarNode || n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 || n.Decode(&v) != nil {
		return &mistake{node: n, msg: describeNode(n) + " is neither True nor False"}
	}
	*p = v
	return nil
}

func decodeParsed[T any](n *yaml.Node, p *T, parse func(string) (T, error), what string) *mistake {
	if n.Kind != yaml.ScalarNode {
		return &mistake{node: n, msg: describeNode(n) + " is not " + what}
	}
	v, err := parse(n.Value)
	if err != nil {
		return &mistake{node: n, msg: describeNode(n) + " is not " + what}
	}
	*p = v
	return nil
}

// decodeList takes a sequence, or one value as a list of one.
func decodeList[T any](n *yaml.Node, p *[]T, one func(*yaml.Node, *T) *mistake) *mistake {
	n = resolveAlias(n)
	nodes := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		nodes = n.Content
	}
	out := make([]T, 0, len(nodes))
	for _, item := range nodes {
		var v T
		if m := one(item, &v); m != nil {
			return m
		}
		out = append(out, v)
	}
	*p = out
	return nil
}

// decodeNetwork takes a CIDR or a single address.
func decodeNetwork(n *yaml.Node, p *netip.Prefix) *mistake {
	var s string
	if m := decodeText(n, &s); m != nil {
		return m
	}
	if a, err := netip.ParseAddr(s); err == nil && a.Zone() == "" {
		*p = netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen())
		return nil
	}
	prefix, err := netip.ParsePrefix(s)
	if err != nil {
		return &mistake{node: resolveAlias(n), msg: fmt.Sprintf("%q is not a network or an address", s),
			hint: "for example 10.0.9.0/24"}
	}
	*p = prefix.Masked()
	return nil
}

func networksByName(n *yaml.Node, p *map[string][]netip.Prefix) *mistake {
	if n.Kind != yaml.MappingNode {
		return &mistake{node: n, msg: describeNode(n) + " is not a map of commands to networks",
			hint: "for example {publish: [10.0.9.0/24]}"}
	}
	out := make(map[string][]netip.Prefix, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		var name string
		if m := decodeText(n.Content[i], &name); m != nil {
			return m
		}
		if _, twice := out[name]; twice {
			return &mistake{node: n.Content[i], msg: name + " is given twice"}
		}
		var networks []netip.Prefix
		if m := decodeList(n.Content[i+1], &networks, decodeNetwork); m != nil {
			return m
		}
		out[name] = networks
	}
	*p = out
	return nil
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a map"
	default:
		return "something else"
	}
}

// describeNode names the value without repeating more than a line of it.
func describeNode(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode {
		return kindName(n)
	}
	const most = 40
	if len(n.Value) > most {
		return fmt.Sprintf("%q...", n.Value[:most])
	}
	return fmt.Sprintf("%q", n.Value)
}
