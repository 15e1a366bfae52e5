package jobcache_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/saltlog"
)

// Two hosts with one id and key return different things for a job: a stock master says so, and so does the node that
// stores them. A minion that sends its return once more does not.
func TestDifferingDuplicateIsNamed(t *testing.T) {
	for name, second := range map[string]struct {
		load dict
		says string
	}{
		"once more": {ret(testJID, "m1", "return", "one", "out", "txt"), ""},
		"another": {ret(testJID, "m1", "return", "two", "out", "txt", "retcode", 3, "success", false),
			"Cached retcode=0 success=True; new retcode=3 success=False."},
		"another out": {ret(testJID, "m1", "return", "one", "out", "nested"),
			"Duplicate return from minion m1 for jid " + testJID},
		"odd retcode":   {ret(testJID, "m1", "return", "one", "out", "txt", "retcode", "a\nb"), "new retcode=? success=True"},
		"of another":    {ret(testJID, "m2", "return", "two"), ""},
		"large, though": {ret(testJID, "m1", "return", strings.Repeat("x", 1<<20)), "differing"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			said := saltlog.New(slog.New(slog.NewTextHandler(&out, nil)), func() bool { return true })
			c, dir := newCache(t, stockOptions(), func(c *jobcache.Config) { c.Log = said })
			apply(t, c, ret(testJID, "m1", "return", "one", "out", "txt"))
			if name == "once more" { // as a stock master encodes it
				overwrite(t, filepath.Join(jobDir(t, dir), "m1/out.p"), "\xc4\x03txt")
			}
			apply(t, c, second.load)
			if n := strings.Count(out.String(), "Got return from m"); n != 2 {
				t.Errorf("%d returns: %s", n, &out)
			}
			if says := strings.Contains(out.String(), "Duplicate return"); says != (second.says != "") ||
				!strings.Contains(out.String(), second.says) {
				t.Errorf("said %s", &out)
			}
		})
	}
}

func overwrite(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
