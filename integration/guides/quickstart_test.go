package guides

import (
	"strings"
	"testing"
)

// mostCommands is how many lines a newcomer types for the quickstart, with its checks. It may become smaller.
const mostCommands = 33

// The quickstart takes as many commands as it says.
func TestQuickstart_Commands(t *testing.T) {
	pages, err := Read("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		if p.Name != "docs/tutorial/quickstart.md" {
			continue
		}
		typed, err := p.Runnables()
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, b := range typed {
			n += strings.Count(strings.TrimSpace(b.Script), "\n") + 1
		}
		if n > mostCommands || n < mostCommands-2 || !strings.Contains(p.Prose(), "about thirty commands") {
			t.Errorf("%d commands, at most %d; the page says about thirty", n, mostCommands)
		}
		return
	}
	t.Error("there is no quickstart")
}
