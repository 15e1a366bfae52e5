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
	MaxText  = 128 // of what an item is like
	maxName  = 1024
)

// Ledger is what one node holds of a section.
type Ledger struct {
	Off   string            `json:"off,omitempty"` // why the node does not take part; empty when it does
	Items map[string]string `json:"items"`
	// Made tells when items were made, Since that this node needs those made then or later only; seconds since 1970, 0:
	// whatever their time.
	Made  map[string]int64 `json:"made,omitempty"`
	Since int64            `json:"since,omitempty"`
}

// Texts that stand for no content.
const (
	Moving  = "~" // the item is changing: whatever others have does not count as a difference
	Removed = "-" // the node had the item, and removed it in due course
)

var errTooLarge = errors.New("a ledger has too many items, or too long ones")

// Encode is the form in which a ledger goes to a peer.
func (l Ledger) Encode() ([]byte, error) {
	if err := l.checkLimits(); err != nil {
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
	if err := l.checkLimits(); err != nil {
		return Ledger{}, err
	}
	return l, nil
}

func (l Ledger) checkLimits() error {
	if len(l.Items) > MaxItems || len(l.Made) > MaxItems || len(l.Off) > maxName {
		return errTooLarge
	}
	for name, text := range l.Items {
		if len(name) > maxName || len(text) > MaxText {
			return errTooLarge
		}
	}
	for name := range l.Made {
		if len(name) > maxName {
			return errTooLarge
		}
	}
	return nil
}

// Difference is an item in which nodes differ.
type Difference struct {
	Item    string
	Texts   map[string]string // by node
	Lacking []string          // nodes that need the item and have it not
}

// Rules say who shall have what. With the zero value all nodes that take part shall have everything.
type Rules struct {
	// Needs, if set, says whether a node shall have an item.
	Needs func(node, item string) bool
	// More, if set, says whether a copy that its node does not need tells of something that the others lack. Without it
	// such copies may be anything.
	More func(other, text string) bool
}

// Compare returns the items, in order, in which the nodes that take part differ.
func (r Rules) Compare(nodes map[string]Ledger) []Difference {
	taking, made := map[string]Ledger{}, map[string]int64{}
	for node, l := range nodes {
		if l.Off != "" {
			continue
		}
		taking[node] = l
		for item, at := range l.Made {
			made[item] = max(made[item], at)
		}
	}
	var out []Difference
	seen := map[string]bool{}
	for _, l := range taking {
		for item := range l.Items {
			if seen[item] {
				continue
			}
			seen[item] = true
			if d, differs := r.compareItem(taking, item, made[item]); differs {
				out = append(out, d)
			}
		}
	}
	slices.SortFunc(out, func(a, b Difference) int { return strings.Compare(a.Item, b.Item) })
	return out
}

// compareItem compares one item.
func (r Rules) compareItem(nodes map[string]Ledger, item string, made int64) (d Difference, differs bool) {
	d = Difference{Item: item, Texts: map[string]string{}}
	var spare []string
	agreed, needed := "", false
	for node, l := range nodes {
		text, has := l.Items[item]
		if text == Moving {
			return d, false
		}
		if text == Removed {
			continue
		}
		if has {
			d.Texts[node] = text
		}
		switch {
		case r.Needs != nil && !r.Needs(node, item), made > 0 && made < l.Since:
			if has {
				spare = append(spare, text)
			}
			continue
		case !has:
			d.Lacking = append(d.Lacking, node)
		case needed && text != agreed:
			differs = true
		}
		if has {
			agreed, needed = text, true
		}
	}
	slices.Sort(d.Lacking)
	if len(d.Lacking) > 0 && len(d.Texts) > 0 {
		differs = true
	}
	for _, text := range spare {
		differs = differs || needed && r.More != nil && r.More(text, agreed)
	}
	return d, differs
}

// Compare returns the items, in order, in which the nodes that take part differ, when all shall have everything.
func Compare(nodes map[string]Ledger) []Difference { return Rules{}.Compare(nodes) }

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
