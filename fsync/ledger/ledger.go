package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Limits of one ledger.
const (
	MaxBody  = 64 << 20
	MaxItems = 200_000
	maxName  = 1024
	maxText  = 128
)

// Ledger is what one node holds of a section.
type Ledger struct {
	Off   string            `json:"off,omitempty"` // why the node does not take part; empty when it does
	Items map[string]string `json:"items"`
}

var errTooLarge = errors.New("a ledger has too many items, or too long ones")

// Encode is the form in which a ledger goes to a peer.
func (l Ledger) Encode() ([]byte, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("encode ledger: %w", err)
	}
	return raw, nil
}

// Decode reads what Encode wrote.
func Decode(raw []byte) (l Ledger, err error) {
	if len(raw) > MaxBody {
		return l, errTooLarge
	}
	if err := json.Unmarshal(raw, &l); err != nil {
		return Ledger{}, fmt.Errorf("decode ledger: %w", err)
	}
	if err := l.check(); err != nil {
		return Ledger{}, err
	}
	return l, nil
}

func (l Ledger) check() error {
	if len(l.Items) > MaxItems || len(l.Off) > maxName {
		return errTooLarge
	}
	for name, text := range l.Items {
		if len(name) > maxName || len(text) > maxText {
			return errTooLarge
		}
	}
	return nil
}

// Difference is an item in which nodes differ.
type Difference struct {
	Item  string
	Texts map[string]string // by node; nodes that lack the item are missing
}

// Compare returns the items, in order, in which the nodes that take part differ.
func Compare(nodes map[string]Ledger) []Difference {
	taking := map[string]map[string]string{}
	for node, l := range nodes {
		if l.Off == "" {
			taking[node] = l.Items
		}
	}
	var out []Difference
	seen := map[string]bool{}
	for _, items := range taking {
		for item, text := range items {
			if seen[item] {
				continue
			}
			seen[item] = true
			if !agree(taking, item, text) {
				out = append(out, difference(taking, item))
			}
		}
	}
	slices.SortFunc(out, func(a, b Difference) int { return strings.Compare(a.Item, b.Item) })
	return out
}

func agree(nodes map[string]map[string]string, item, text string) bool {
	for _, items := range nodes {
		if t, ok := items[item]; !ok || t != text {
			return false
		}
	}
	return true
}

func difference(nodes map[string]map[string]string, item string) Difference {
	d := Difference{Item: item, Texts: map[string]string{}}
	for node, items := range nodes {
		if t, ok := items[item]; ok {
			d.Texts[node] = t
		}
	}
	return d
}

// Settled splits what a later look found different: what an earlier look found the same way, and what is moving.
func Settled(earlier, later []Difference) (settled, moving []Difference) {
	before := make(map[string]map[string]string, len(earlier))
	for _, d := range earlier {
		before[d.Item] = d.Texts
	}
	for _, d := range later {
		if texts, ok := before[d.Item]; ok && maps.Equal(texts, d.Texts) {
			settled = append(settled, d)
		} else {
			moving = append(moving, d)
		}
	}
	return settled, moving
}
