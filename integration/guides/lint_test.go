package guides

import (
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

func TestGlued(t *testing.T) {
	whole := "# A page\n\nText of the page.\n\n- an item\n  and more of it\n- another\n\n    code\n    more\n\nText.\n\n| a | b |\n|---|---|\n\n```sh\nx\n```\n"
	if got := NewPage("p.md", whole).Glued(); len(got) != 0 {
		t.Errorf("a whole page: %q", got)
	}
	long := "What somebody decides while you look stays as it is, and is named.\n"
	for text, want := range map[string]string{
		"Text.\n\n    code\n- an item\n":   "p.md:4: no blank line between a block of code and a list",
		"Text.\n\n    code\nmore text\n":   "p.md:4: no blank line between a block of code and a paragraph",
		"Text.\n- an item\n":               "p.md:2: no blank line between a paragraph and a list",
		"Text.\n## A heading\n\nText.\n":   "p.md:2: no blank line between a paragraph and a heading",
		"Text.\n\n## A heading\nText.\n":   "p.md:4: no blank line between a heading and a paragraph",
		"Text.\n| a | b |\n":               "p.md:2: no blank line between a paragraph and a table",
		"Text.\n```sh\nx\n```\n":           "p.md:2: no blank line between a paragraph and the fence of a block",
		"```sh\nx\n```\nText.\n":           "p.md:4: no blank line between the fence of a block and a paragraph",
		"```sh\nx\n":                       "p.md:3: a block of code is not closed",
		long + "\nText.\n\n" + long + "\n": "p.md:5: the same line as 1",
	} {
		if got := NewPage("p.md", text).Glued(); len(got) != 1 || got[0] != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestUnmarked(t *testing.T) {
	const commands = "# A\n\nText.\n\n## B\n\n    saltclusterctl status\n\n"
	if got := NewPage("p.md", commands).Unmarked(); len(got) != 1 || !strings.HasPrefix(got[0], "p.md:5: B: no block") {
		t.Errorf("%q", got)
	}
	if got := NewPage("p.md", "<!-- not run: needs a share -->\n"+commands).Unmarked(); len(got) != 0 {
		t.Errorf("a whole page: %q", got)
	}
	for _, more := range []string{
		"<!-- not run: a node that is lost -->\n", "```sh runnable=site\nsaltclusterctl status\n```\n",
	} {
		if got := NewPage("p.md", commands+more).Unmarked(); len(got) != 0 {
			t.Errorf("%q: %q", more, got)
		}
	}
}

// The pages are whole.
func TestPages_Structure(t *testing.T) {
	pages, err := Read("../..")
	require.NoError(t, err)
	for _, p := range pages {
		for _, fault := range append(p.Glued(), p.Unmarked()...) {
			t.Error(fault)
		}
	}
}
