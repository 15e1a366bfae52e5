package console

import (
	"os"
	"strings"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func TestWrapText(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  []string
	}{
		{"", 10, []string{""}},
		{"it fits", 10, []string{"it fits"}},
		{"it fits just", 12, []string{"it fits just"}},
		{"it does not fit", 9, []string{"it does", "not fit"}},
		{"a-word-that-is-longer than that", 10, []string{"a-word-that-is-longer", "than that"}},
		{"first a-word-that-is-longer", 10, []string{"first", "a-word-that-is-longer"}},
		{"two  spaces  stay", 11, []string{"two  spaces", "stay"}},
		{"\x1b[31mred words\x1b[0m count without", 15, []string{"\x1b[31mred words\x1b[0m count", "without"}},
		{"ends with a space ", 17, []string{"ends with a space "}},
		{"größere Wörter zählen", 15, []string{"größere Wörter", "zählen"}},
	} {
		check.EqualSlices(t, wrapText(c.text, c.width), c.want, c.text, "in", c.width, "columns")
	}
}

func TestScreen_Wrapped(t *testing.T) {
	text := strings.Repeat("word ", 7) + "end"
	s := &Screen{Columns: 30}
	s.Wrapped("     -> ", "%s", text)
	if got, want := s.String(), "     -> word word word word\n        word word word end\n"; got != want {
		t.Errorf("wrapped:\n%swant\n%s", got, want)
	}
	s = &Screen{}
	s.Wrapped("-> ", "%s", text)
	check.Equal(t, s.String(), "-> "+text+"\n", "not to be wrapped")
}

// A table that is too wide loses characters where it may, and wraps its last column.
func TestScreen_PrintTable(t *testing.T) {
	s := &Screen{Columns: 40}
	s.PrintTable("", []string{"ID", "STATE", "TEXT"}, [][]Cell{
		{Txt("salt-master-1.example.com").WithCut(), Txt("alive"), Txt("some words that do not fit")},
		{Txt("m2").WithCut(), Txt("failed"), Txt("few")},
	})
	want := `ID          STATE   TEXT
salt-mast…  alive   some words that do
                    not fit
m2          failed  few
`
	check.Equal(t, s.String(), want)
}

// A file has no width: $COLUMNS is taken, and 80 where that says nothing.
func TestColumnsOf(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer f.Close()
	for variable, want := range map[string]int{"": 80, "nonsense": 80, "0": 80, "120": 120} {
		check.Equal(t, columnsOf(f, variable), want, "with COLUMNS=", variable)
	}
}

// Ids are shortened only when the last column, which is wrapped, has little room left.
func TestPrintTable_WrapsBeforeItCuts(t *testing.T) {
	id, text := "web-frontend-0017.dmz.example.com", strings.Repeat("it does not answer ", 8)
	for columns, whole := range map[int]bool{80: true, 56: true, 50: false} {
		s := &Screen{Columns: columns}
		s.PrintTable("", []string{"ID", "REASON"}, [][]Cell{{Txt(id).WithCut(), Txt(text)}})
		if got := strings.Contains(s.String(), id); got != whole {
			t.Errorf("%d columns, whole %t:\n%s", columns, got, s.String())
		}
		for line := range strings.Lines(s.String()) {
			if textWidth(strings.TrimRight(line, "\n")) > columns {
				t.Errorf("%d columns: %q", columns, line)
			}
		}
	}
}
