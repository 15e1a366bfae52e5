package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// CheckPing returns nil when ret is what test.ping returns.
func (m *Minion) CheckPing(ret any) error {
	if ret != true {
		return fmt.Errorf("answered %v", ret)
	}
	return nil
}

// CheckPillar returns nil when ret is the demo's pillar, rendered for this very minion. Salt 3008 shows masks at the
// command line; there CheckApplied looks at a file made from the pillar.
func (m *Minion) CheckPillar(ret any) error {
	all, _ := ret.(map[string]any)
	switch demo := all["demo"].(type) {
	case map[string]any:
		if f := demo["for"]; f != m.ID && !m.masks(f) {
			return fmt.Errorf("pillar of %v", f)
		}
		if n, _ := demo["numbers"].([]any); len(n) != 3 && !m.masks(demo["numbers"]) {
			return fmt.Errorf("numbers are %v", demo["numbers"])
		}
		return nil
	default:
		if m.masks(demo) {
			return nil
		}
		return fmt.Errorf("pillar is %v", ret)
	}
}

func (m *Minion) masks(v any) bool {
	s, _ := v.(string)
	return strings.HasPrefix(m.Version, "3008") && s != "" && strings.Trim(s, "*") == ""
}

// statesInDemo is how many states roots/states/demo has.
const statesInDemo = 5

// CheckApplied returns nil when ret says that every state of the demo succeeded, and the files are there as the pillar
// says.
func (m *Minion) CheckApplied(ret any) error {
	states, ok := ret.(map[string]any)
	if !ok {
		return fmt.Errorf("answered %v", ret)
	}
	if len(states) != statesInDemo {
		return fmt.Errorf("%d states instead of %d", len(states), statesInDemo)
	}
	for name, v := range states {
		if s, _ := v.(map[string]any); s["result"] != true {
			return fmt.Errorf("state %s: %v", name, s["comment"])
		}
	}
	motd, err := os.ReadFile(filepath.Join(m.StateDir(), "motd"))
	if err != nil {
		return err
	}
	if want := fmt.Sprintf("This is %s, Salt %s, of a lab of three masters.\n", m.ID, m.Version); string(motd) != want {
		return fmt.Errorf("motd is %q, want %q", motd, want)
	}
	for _, name := range []string{"plain.txt", "big.bin", "tree/one.txt", "tree/sub/two.txt"} {
		if _, err := os.Stat(filepath.Join(m.StateDir(), name)); err != nil {
			return err
		}
	}
	return nil
}
