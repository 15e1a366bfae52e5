package missedjobs

import (
	"bytes"
	"testing"
	"time"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/localmaster/mastertest"
)

// saved is what a stock master has made of what a command line has sent.
type saved struct {
	JID   string `json:"jid"`
	Load  []byte `json:"load"`
	Plain []byte `json:"plain"`
}

// commands are what a command line sends (salt/client/__init__.py LocalClient._prep_pub).
func commands() []map[string]any {
	base := func(more map[string]any) map[string]any {
		c := map[string]any{
			"cmd": "publish", "tgt": "*", "fun": "test.ping", "arg": []any{}, "key": "secret", "tgt_type": "glob", "ret": "",
			"jid":  "",
			"user": "root",
		}
		for name, v := range more {
			c[name] = v
		}
		return c
	}
	return []map[string]any{
		base(nil),
		base(map[string]any{"tgt": []any{"web1", "wéb2"}, "tgt_type": "list",
			"arg": []any{"a", 1, 2.5, nil, true, map[string]any{"__kwarg__": true, "x": "ü"}}}),
		base(map[string]any{"fun": []any{"test.ping", "cmd.run"}, "arg": []any{[]any{}, []any{"id"}}, "to": 5}),
		base(map[string]any{"tgt": "os|Debian", "tgt_type": "grain", "ret": "redis", "kwargs": map[string]any{
			"delimiter": "|", "id": "web1", "ret_config": "other", "metadata": map[string]any{"ticket": 17},
			"module_executors": []any{"sudo"},
			"executor_opts":    map[string]any{"a": 1}, "ret_kwargs": map[string]any{"b": 2}, "start_event": true,
			"master_id":    "m9",
			"show_timeout": true,
		}}),
		base(map[string]any{"kwargs": map[string]any{"delimiter": ":", "start_event": false, "metadata": nil}}),
	}
}

// TestBuildPublication_SameAsStock: made of what each version has saved, byte for byte; and the job is found where that
// has put it.
func TestBuildPublication_SameAsStock(t *testing.T) {
	for _, version := range mastertest.Versions(t) {
		for name, config := range map[string]string{"default": "",
			"odd": "master_id: m1\nhash_type: md5\nunique_jid: True\nutc_jid: True\n"} {
			t.Run(version+"/"+name, func(t *testing.T) {
				t.Parallel()
				m := mastertest.New(t, mastertest.Options{Version: version, Config: config})
				ver, err := localmaster.ParseVersion(version)
				require.NoError(t, err)
				cfg, err := localmaster.LoadConfig(m.ConfigPath, ver)
				require.NoError(t, err)
				var theirs []saved
				began := time.Now()
				m.Code("testdata/publish.py", 0o022, commands(), &theirs)
				if len(theirs) != len(commands()) {
					t.Fatalf("%d publications", len(theirs))
				}
				of := master{ver.Major, cfg.Text("master_id")}
				for i, one := range theirs {
					plain, err := of.buildPublication(one.Load)
					if err != nil || !bytes.Equal(plain, one.Plain) {
						t.Errorf("%v:\n%q, %v, want\n%q", commands()[i], plain, err, one.Plain)
					}
				}
				found, err := listJobs(t.Context(), m.CacheDir, began.Add(-time.Second), time.Now())
				if err != nil || len(found) != len(theirs) {
					t.Fatalf("%d jobs found, %v", len(found), err)
				}
				for i, j := range found {
					if j.jid != theirs[i].JID || !bytes.Equal(j.load, theirs[i].Load) {
						t.Errorf("found %s, want %s", j.jid, theirs[i].JID)
					}
				}
			})
		}
	}
}
