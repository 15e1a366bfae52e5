package guides

import (
	"fmt"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

const (
	// mostCommands is how many commands a newcomer types for the quickstart. It may become smaller.
	mostCommands = 16
	// onAllNodes is how many hosts take the command that is not run here: the package's.
	onAllNodes = 3
)

// The quickstart takes as many commands as it says, each on a line of its own.
func TestQuickstart_Commands(t *testing.T) {
	pages, err := Read("../..")
	require.NoError(t, err)
	for _, p := range pages {
		if p.Name != "docs/tutorial/quickstart.md" {
			continue
		}
		n := 0
		blocks, _ := p.blocks()
		for _, b := range blocks {
			hosts := onAllNodes
			if strings.Contains(b.info, "runnable") {
				hosts = 1
			}
			if b.info == showsInfo {
				continue
			}
			for _, line := range b.lines {
				if strings.ContainsAny(line, "&|;") {
					t.Errorf("line %d: several commands: %s", b.line, line)
				}
			}
			n += hosts * len(b.lines)
		}
		if n > mostCommands || !strings.Contains(p.Prose(), fmt.Sprintf("You type %d commands.", n)) {
			t.Errorf("%d commands, at most %d; the page names the number", n, mostCommands)
		}
		return
	}
	t.Error("there is no quickstart")
}
