package config

import (
	"os/exec"
	"strings"
	"testing"
)

func TestManualHasEveryOption(t *testing.T) {
	page := string(Manual("test"))
	for _, name := range Names() {
		if !strings.Contains(page, ".TP\n\\fB"+strings.ReplaceAll(name, "-", `\-`)+"\\fR\n") {
			t.Errorf("%s is not in the manual", name)
		}
	}
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("no groff here")
	}
	cmd := exec.CommandContext(t.Context(), groff, "-man", "-Tutf8", "-ww")
	cmd.Stdin = strings.NewReader(page)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	if err := cmd.Run(); err != nil || complaints.String() != "" {
		t.Errorf("%v\n%s", err, &complaints)
	}
}
