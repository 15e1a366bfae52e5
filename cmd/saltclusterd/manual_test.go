package main

import (
	"bytes"
	"flag"
	"io"
	"os/exec"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

func TestManualHasEveryFlag(t *testing.T) {
	var page bytes.Buffer
	require.NoError(t, run(t.Context(), t.Context(), []string{"--manual"}, &page, io.Discard))
	flags, _ := newFlags(io.Discard)
	flags.VisitAll(func(f *flag.Flag) {
		if !strings.Contains(page.String(), `\fB\-\-`+f.Name+`\fR`) {
			t.Errorf("--%s is not in the manual", f.Name)
		}
	})
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("no groff here")
	}
	cmd := exec.CommandContext(t.Context(), groff, "-man", "-Tutf8", "-ww")
	cmd.Stdin = &page
	var complaints strings.Builder
	cmd.Stderr = &complaints
	if err := cmd.Run(); err != nil || complaints.String() != "" {
		t.Errorf("%v\n%s", err, &complaints)
	}
}
