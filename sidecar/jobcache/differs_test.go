package jobcache_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/integration/require"
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

// A return without the signature that the master demands, or with one that is not the minion's, is named as a stock
// master names it.
func TestWrongSignatureIsNamed(t *testing.T) {
	keys := newKeys(t, "")
	text := disk(t, ret(testJID, "m1").without("nonce").without("tok"))
	good, err := keys.sign.Sign("PKCS1v15-SHA224", text)
	require.NoError(t, err)
	bad := bytes.Clone(good)
	bad[5] ^= 1
	for name, c := range map[string]struct {
		sig  []byte
		says string
	}{
		"signed":            {good, ""},
		"without signature": {nil, "there is no signature in this payload from m1"},
		"another's":         {bad, "Failed to verify event signature from minion m1"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			o := stockOptions()
			o["require_minion_sign_messages"], o["drop_messages_signature_fail"] = true, true
			o["signing_algorithm"] = "PKCS1v15-SHA224"
			cache, _ := newCache(t, o, func(c *jobcache.Config) {
				c.Keys, c.Log = keys, saltlog.New(slog.New(slog.NewTextHandler(&out, nil)), func() bool { return false })
			})
			load := ret(testJID, "m1")
			if c.sig != nil {
				load = append(load, "sig", c.sig)
			}
			if p := plan(t, cache, load); (len(p.Jobs) == 1) != (c.says == "") {
				t.Errorf("planned %+v", p.Jobs)
			}
			if !strings.Contains(out.String(), c.says) || c.says == "" && out.Len() > 0 {
				t.Errorf("said %s", &out)
			}
		})
	}
}

func overwrite(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}
