package state

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Scripts are stories told in log records: a line with ">" is a command, one
// with "?" a question; what follows up to the next such line is the answer.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/scripts/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			got := play(t, string(want))
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
			} else if got != string(want) {
				t.Errorf("got\n%s", got)
			}
		})
	}
}

func play(t *testing.T, script string) string {
	s := born(t)
	var out strings.Builder
	for line := range strings.Lines(script) {
		text := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(text, "#"), text == "":
			out.WriteString(line)
		case strings.HasPrefix(text, "> "):
			out.WriteString(line)
			out.WriteString("  " + command(t, s, text[2:]) + "\n")
		case strings.HasPrefix(text, "? "):
			out.WriteString(line)
			for _, l := range ask(t, s.View(), text[2:]) {
				out.WriteString("  " + l + "\n")
			}
		}
	}
	return out.String()
}

func command(t *testing.T, s *State, text string) string {
	typ, body, _ := strings.Cut(text, " ")
	c, err := DecodeCommand(fmt.Appendf(nil, `{"v":1,"t":%q,"d":%s}`, typ, body))
	if err != nil {
		return "error: " + err.Error()
	}
	r := s.ApplyCommands(c)[0]
	check(t, s)
	b, err := json.Marshal(r)
	require.NoError(t, err)
	return string(b)
}

func ask(t *testing.T, v View, question string) (out []string) {
	var facts []any
	var since uint64
	switch _, err := fmt.Sscanf(question, "since %d", &since); {
	case err == nil:
		for _, c := range v.KeysSince(since) {
			facts = append(facts, c)
		}
	case question == "members":
		for _, m := range v.Members() {
			m.Fingerprint = m.Fingerprint[:4]
			facts = append(facts, m)
		}
	case question == "denied":
		for _, k := range v.DeniedKeys() {
			facts = append(facts, k)
		}
	case question == "epochs":
		facts = append(facts, v.Epochs().Current, v.Epochs().Previous, fmt.Sprint("due: ", v.RotationDue()))
	default:
		t.Fatalf("unknown question %q", question)
	}
	for _, f := range facts {
		b, err := json.Marshal(f)
		require.NoError(t, err)
		out = append(out, string(b))
	}
	return out
}
