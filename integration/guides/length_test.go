package guides

import (
	"testing"

	"saltclusterd/integration/require"
)

// maxWords is how long a page is that a reader finishes.
const maxWords = 2000

// long are the pages that are longer, with the words they have. A page may leave the list or get shorter, not longer,
// except for one that is made from a table in the code.
var long = map[string]int{
	// These are made from tables in the code, and looked up rather than read.
	"docs/reference/cli.md":           6500,
	"docs/reference/configuration.md": 3600,
	"docs/reference/json.md":          4500,
	"docs/reference/metrics.md":       3500,
}

// Pages are short.
func TestPages_Length(t *testing.T) {
	pages, err := Read("../..")
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, p := range pages {
		n, most := p.Words(), maxWords
		if allowed, ok := long[p.Name]; ok {
			seen[p.Name], most = true, allowed
			if n <= maxWords {
				t.Errorf("%s has %d words: take it off the list", p.Name, n)
			}
		}
		if n > most {
			t.Errorf("%s has %d words, at most %d: split it by task, or say it in fewer words", p.Name, n, most)
		}
	}
	for name := range long {
		if !seen[name] {
			t.Errorf("there is no page %s: take it off the list", name)
		}
	}
}

func TestWords(t *testing.T) {
	if n := NewPage("p.md", "# Two words\n\n| a | 1.5 |\n|---|---|\n\n    code 7\n").Words(); n != 4 {
		t.Errorf("%d words", n)
	}
}
