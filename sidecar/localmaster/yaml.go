package localmaster

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// What aliases and nesting can blow a file up to.
const (
	maxYAMLNodes = 1 << 19
	maxYAMLDepth = 200
)

// yamlReader turns a node tree into values as Salt's SaltYamlSafeLoader does.
type yamlReader struct {
	left   int
	hidden bool // question marks are
}

// yamlVersion is a directive before the first document. PyYAML reads all minor versions as it reads 1.1, the library
// here no other.
var yamlVersion = regexp.MustCompile(`\A((?:\x{feff})?(?:[ \t]*(?:#[^\n]*)?\r?\n)*%YAML[ \t]+1\.)[0-9]+`)

// flowMark is a question mark within a word. PyYAML takes it as a part of that; in [web?] and {a: web?} the library
// here ends the word before it, and fails.
var flowMark = regexp.MustCompile(`([^\s\[\]{},])\?`)

// hiddenMark stands for it, in texts without one.
const hiddenMark = "\uf8ff"

// parseYAML reads the one document of a configuration file; nil when it is empty.
func parseYAML(text []byte) (any, error) {
	v, err := parseDocument(text, &yamlReader{left: maxYAMLNodes})
	if err == nil || !flowMark.Match(text) || bytes.Contains(text, []byte(hiddenMark)) {
		return v, err
	}
	for flowMark.Match(text) { // of two in a row the first pass finds one
		text = flowMark.ReplaceAll(text, []byte("${1}"+hiddenMark))
	}
	if v, again := parseDocument(text, &yamlReader{left: maxYAMLNodes, hidden: true}); again == nil {
		return v, nil
	}
	return nil, err
}

// fromZero is what the library's parser says, which, unlike its scanner, counts lines from zero.
var fromZero = regexp.MustCompile(`^yaml: line (\d+): (did not find expected .*|found (?:undefined|duplicate|incompatible) .*)$`)

// countedFromOne names the line that an editor shows.
func countedFromOne(err error) error {
	m := fromZero.FindStringSubmatch(err.Error())
	if m == nil {
		return err
	}
	line, _ := strconv.Atoi(m[1])
	return fmt.Errorf("yaml: line %d: %s", line+1, m[2])
}

func parseDocument(text []byte, r *yamlReader) (any, error) {
	dec := yaml.NewDecoder(bytes.NewReader(yamlVersion.ReplaceAll(text, []byte("${1}1"))))
	var doc, more yaml.Node
	if err := dec.Decode(&doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, nil
		}
		return nil, err
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("line %d: a second document begins", more.Line)
	}
	return r.readValue(&doc, 0)
}

func (r *yamlReader) readValue(n *yaml.Node, depth int) (any, error) {
	if r.left--; r.left < 0 || depth > maxYAMLDepth {
		return nil, fmt.Errorf("line %d: too many or too deeply nested values", n.Line)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		if len(n.Content) == 0 {
			return nil, nil
		}
		return r.readValue(n.Content[0], depth)
	case yaml.AliasNode:
		return r.readValue(n.Alias, depth+1)
	case yaml.SequenceNode:
		return r.readSequence(n, depth)
	case yaml.MappingNode:
		return r.readMapping(n, depth)
	}
	return r.readScalar(n)
}

func (r *yamlReader) readSequence(n *yaml.Node, depth int) (any, error) {
	list := make([]any, 0, len(n.Content))
	for _, item := range n.Content {
		v, err := r.readValue(item, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

// readMapping reads the pairs of n; none of its keys may stand twice. Merged pairs (<<) yield to those of the mapping
// itself.
func (r *yamlReader) readMapping(n *yaml.Node, depth int) (map[string]any, error) {
	m := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if isMerge(key) {
			continue
		}
		name, err := r.readKey(key, depth)
		if err != nil {
			return nil, err
		}
		if _, taken := m[name]; taken {
			return nil, conflictError(key, name)
		}
		if m[name], err = r.readValue(n.Content[i+1], depth+1); err != nil {
			return nil, err
		}
	}
	return m, r.mergePairs(n, m, depth)
}

// mergePairs adds the pairs merged into n. Two sources with the same key are refused, as Salt's loader does.
func (r *yamlReader) mergePairs(n *yaml.Node, m map[string]any, depth int) error {
	merged := map[string]any{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if !isMerge(n.Content[i]) {
			continue
		}
		for _, src := range mergeSources(n.Content[i+1]) {
			if r.left--; src.Kind != yaml.MappingNode || depth > maxYAMLDepth || r.left < 0 {
				return fmt.Errorf("line %d: expected a mapping for merging", src.Line)
			}
			pairs, err := r.readMapping(src, depth+1)
			if err != nil {
				return err
			}
			for name, v := range pairs {
				if _, own := m[name]; own {
					continue
				}
				if _, twice := merged[name]; twice {
					return conflictError(src, name)
				}
				merged[name] = v
			}
		}
	}
	maps.Copy(m, merged)
	return nil
}

func mergeSources(n *yaml.Node) []*yaml.Node {
	n = derefAlias(n)
	if n.Kind != yaml.SequenceNode {
		return []*yaml.Node{n}
	}
	out := make([]*yaml.Node, len(n.Content))
	for i, src := range n.Content {
		out[i] = derefAlias(src)
	}
	return out
}

func conflictError(n *yaml.Node, name string) error {
	return fmt.Errorf("line %d: found conflicting ID '%s'", n.Line, name)
}

func derefAlias(n *yaml.Node) *yaml.Node {
	for range 10 {
		if n.Kind != yaml.AliasNode {
			break
		}
		n = n.Alias
	}
	return n
}

func isMerge(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Value == "<<" && n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0
}

func (r *yamlReader) readKey(n *yaml.Node, depth int) (string, error) {
	v, err := r.readValue(n, depth+1)
	if err != nil {
		return "", err
	}
	switch v.(type) {
	case []any, map[string]any:
		return "", fmt.Errorf("line %d: found unacceptable key", n.Line)
	}
	return pyStr(v), nil
}

func (r *yamlReader) readScalar(n *yaml.Node) (any, error) {
	const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	if r.hidden {
		n.Value = strings.ReplaceAll(n.Value, hiddenMark, "?")
	}
	if n.Style&yaml.TaggedStyle == 0 {
		if n.Style&quoted != 0 {
			return n.Value, nil
		}
		return plainScalar(n.Value), nil
	}
	switch tag := n.ShortTag(); tag {
	case "!!str", "!!timestamp", "!":
		return n.Value, nil
	case "!!null":
		return nil, nil
	case "!!binary":
		b, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(n.Value), ""))
		if err != nil {
			return nil, fmt.Errorf("line %d: failed to decode base64 data", n.Line)
		}
		return string(b), nil
	case "!!int", "!!float", "!!bool":
		switch v := plainScalar(n.Value).(type) {
		case int64, float64, bool:
			return v, nil
		}
		return nil, fmt.Errorf("line %d: %q is no %s", n.Line, n.Value, tag)
	default:
		return nil, fmt.Errorf("line %d: could not determine a constructor for the tag %s", n.Line, tag)
	}
}
