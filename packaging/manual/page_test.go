package manual

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// No text becomes a request of roff.
func TestPage_EscapesRequests(t *testing.T) {
	p := New("x", 1, "x 1", "does -x")
	p.Text(".so /etc/passwd")
	p.Text("'br")
	p.Lines(".so /etc/passwd", `back\slash`, "…")
	p.Item(".TP", "", "\n.SH")
	p.Heading(`a "title" \fB`)
	for line := range strings.Lines(string(p.Bytes())) {
		for _, bad := range []string{".so", "'", `\slash`, ".SH\n"} {
			if strings.HasPrefix(line, bad) || bad == `\slash` && strings.Contains(line, bad) {
				t.Errorf("%q in %q", bad, line)
			}
		}
	}
}

// groff reads a page without a complaint, and shows what was put in.
func TestGroffUnderstands(t *testing.T) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("no groff here")
	}
	p := New("x", 8, "x 1", "short")
	p.Heading("OPTIONS")
	p.Item("--config", "FILE", "the configuration; `it` isn't ~ ^ \\ small…")
	p.Under("more")
	p.Item("--empty", "", "")
	p.Sub("sub")
	p.Bold("type --this")
	p.Lines("# as it is:", "  - 'a'", ".b")
	cmd := exec.CommandContext(t.Context(), groff, "-man", "-Tutf8", "-ww", "-P-c")
	cmd.Stdin = strings.NewReader(string(p.Bytes()))
	var out, complaints strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil || complaints.String() != "" {
		t.Fatalf("%v\n%s\n%s", err, &complaints, p.Bytes())
	}
	text := regexp.MustCompile(".\b").ReplaceAllString(out.String(), "") // what is bold or underlined is printed twice
	for _, want := range []string{"--config FILE", "`it` isn't ~ ^ \\ small…", "  - 'a'", ".b"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
