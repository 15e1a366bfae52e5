package scale

import (
	"go/constant"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/require"
)

// durations lets expressions of the sources be evaluated without package time.
var durations = strings.NewReplacer("time.Millisecond", "1000000", "time.Second", "1000000000", "time.Minute",
	"60000000000")

// TestProgramConstants compares constants of the model with those of the program, which stand in its sources after some
// text.
func TestProgramConstants(t *testing.T) {
	for _, c := range []struct {
		dir, after string
		model      any
	}{
		{"sidecar/signin", "cfg.Queue = ", signInQueue},
		{"sidecar/signin", "cfg.LateAfter = ", signInTimeout},
		{"sidecar/signin", "cfg.Share = ", signInShare},
		{"sidecar/signin", "\tburst = ", budgetBurst},
		{"fsync/keydir", "set(&t.Debounce, ", keyDebounce},
		{"fsync/keydir", "set(&t.Settle, ", keySettle},
		{"fsync/keydir", "syncEach = ", syncEach},
		{"consensus", "requestCommands = ", keyCommands},
		{"consensus", "orDefault(&c.MaxVoters, ", maxVoters},
		{"sidecar", "peerTimeout = ", peerTimeout},
		{"cmd/saltclusterd/config", "MaxInFlight: ", maxInFlight},
		{"sidecar/spool", "cmp.Or(c.GroupBytes, ", groupBytes},
		{"sidecar/spool", "cmp.Or(c.BatchRecords, ", batchRecords},
		{"sidecar/jobcache", "cmp.Or(c.Rate, ", busRate},
		{"sidecar/jobcache", "cmp.Or(c.Burst, ", busBurst},
		{"sidecar/jobcache", "slowest = ", jobRate},
		{"sidecar/eventbus", "cmp.Or(o.QueueEvents, ", jobBurst * 5 / 3},
		{"fsync/jobs", "replica.Pace{Linger: ", linger},
		{"fsync/jobs", "batchRecords = ", copyRecords},
		{"fsync/jobs", "batchBytes = ", copyBytes},
	} {
		text := sourceOf(t, c.dir)
		m := regexp.MustCompile(regexp.QuoteMeta(c.after) + `([^\n,);/]+)`).FindStringSubmatch(text)
		if m == nil {
			t.Errorf("%s: %q is not in the sources", c.dir, c.after)
			continue
		}
		tv, err := types.Eval(token.NewFileSet(), nil, token.NoPos, durations.Replace(m[1]))
		if err != nil || tv.Value == nil {
			t.Errorf("%s: %s%s: %v", c.dir, c.after, m[1], err)
			continue
		}
		got, _ := constant.Float64Val(constant.ToFloat(tv.Value))
		var want float64
		switch v := c.model.(type) {
		case int:
			want = float64(v)
		case float64:
			want = v
		case time.Duration:
			want = float64(v)
		}
		if got != want {
			t.Errorf("%s: %s%s, and the model has %v", c.dir, c.after, m[1], c.model)
		}
	}
}

// sourceOf returns the files of a package, with spaces of alignment collapsed.
func sourceOf(t *testing.T, dir string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %d files, %v", dir, len(names), err)
	}
	var all strings.Builder
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		raw, err := os.ReadFile(name)
		require.NoError(t, err)
		all.Write(raw)
	}
	return regexp.MustCompile(` +`).ReplaceAllString(all.String(), " ")
}
