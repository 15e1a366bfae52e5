package localmaster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

func loadText(t *testing.T, major int, text string) *Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "master")
	require.NoError(t, os.WriteFile(path, []byte("id: x\n"+text), 0o644))
	cfg, err := LoadConfig(path, Version{Major: major})
	require.NoError(t, err)
	return cfg
}

func TestWorkers(t *testing.T) {
	for text, want := range map[string][3]int{
		"":                   {5, 5, 5},
		"worker_threads: 12": {12, 12, 12},
		"worker_pools: {auth: {worker_count: 2, commands: [_auth]}, rest: {worker_count: 7, commands: ['*']}}": {5, 5, 7},
		"worker_pools: {rest: {worker_count: many, commands: ['*']}}":                                          {5, 5, 5},
		"worker_threads: [1]": {0, 0, 0},
	} {
		for i, major := range []int{3006, 3007, 3008} {
			if got := loadText(t, major, text).Workers(); got != want[i] {
				t.Errorf("%d: %q: %d workers, not %d", major, text, got, want[i])
			}
		}
	}
}

func TestDropInSatisfiesTheCheck(t *testing.T) {
	for _, major := range []int{3006, 3007, 3008} {
		cfg := loadText(t, major, "interface: 0.0.0.0\nkeys.cache_driver: redis\ncluster_id: k\ncluster_pki_dir: /x\n")
		if len(CheckDropIn(cfg)) < 3 {
			t.Errorf("%d: findings %+v", major, CheckDropIn(cfg))
		}
		path, err := cfg.DropInPath()
		require.NoError(t, err)
		o := DropInOptions{MasterID: "it's: node #1", Version: cfg.Version, EndNative: true}
		if changed, err := WriteDropIn(path, o); err != nil || !changed {
			t.Fatalf("written %v, %v", changed, err)
		}
		if changed, err := WriteDropIn(path, o); err != nil || changed {
			t.Errorf("written again %v, %v", changed, err)
		}
		if cfg, err = LoadConfig(cfg.Path, cfg.Version); err != nil {
			t.Fatal(err)
		}
		if found := CheckDropIn(cfg); len(found) != 0 || cfg.MasterID != o.MasterID {
			t.Errorf("%d: findings %+v, master_id %q", major, found, cfg.MasterID)
		}
	}
}

func TestKeyStoreIsKept(t *testing.T) {
	if found := CheckDropIn(loadText(t, 3008,
		"interface: 127.0.0.1\nmaster_id: n\nkeys.cache_driver: mmap_key\n")); len(found) != 0 {
		t.Errorf("findings %+v", found)
	}
	text, err := DropIn(DropInOptions{MasterID: "n", Version: Version{Major: 3008}, KeyDriver: "mmap_key"})
	if err != nil || strings.Contains(string(text), "cache_driver") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestFindings(t *testing.T) {
	good := "interface: 127.0.0.1\nmaster_id: n\n"
	for option, line := range map[string]string{
		"cluster_id": "cluster_id: c\n", "transport": "transport: tcp\n", "key_pass": "key_pass: hunter2\n",
		"auth_mode": "auth_mode: 2\n", "keys.cache_driver": "keys.cache_driver: redis\n", "ret_port": "ret_port: 4505\n",
		"interface": "interface: 10.0.0.1\n", "master_id": "master_id: ''\n",
		"max_minions": "max_minions: 5\n", "ipc_mode": "ipc_mode: tcp\n", "user": "user: sdb://x/y\n",
		"presence_events": "presence_events: True\n", "engines": "engines: [{mine: {engine_module: stalekey}}, stalekey]\n",
		"transport_opts": "transport_opts: {tcp: {publish_port: 1}}\n",
		"cache":          "cache: mmap_cache\n", "pillar.cache_driver": "pillar.cache_driver: mmap_cache\n",
		"eauth_tokens.cache_driver": "eauth_tokens.cache_driver: mmap_cache\n", "master_job_cache": "master_job_cache: salt_cache\n",
	} {
		text := line
		for l := range strings.Lines(good) {
			if !strings.HasPrefix(l, option+":") {
				text += l
			}
		}
		found := CheckDropIn(loadText(t, 3008, text))
		if len(found) != 1 || found[0].Option != option || found[0].Fix == "" || !strings.HasSuffix(found[0].Message, ".") {
			t.Errorf("%s: findings %+v", option, found)
		}
		for _, f := range found {
			if strings.Contains(f.Message+f.Fix, "hunter2") {
				t.Errorf("%s: a finding tells a secret", option)
			}
		}
	}
}

// Stores that all masters may have in common are not reported, nor what 3008 has only.
func TestFindings_Stores(t *testing.T) {
	for text, major := range map[string]int{
		"cache: redis_cache\nmaster_job_cache: salt_cache\n": 3008, "pillar.cache_driver: redis_cache\n": 3008,
		"cache: mmap_cache\nmaster_job_cache: salt_cache\n": 3007, "pillar_cache: True\n": 3008,
	} {
		if found := CheckDropIn(loadText(t, major, "interface: 127.0.0.1\nmaster_id: n\n"+text)); len(found) != 0 {
			t.Errorf("%d, %s: %+v", major, text, found)
		}
	}
	both := CheckDropIn(loadText(t, 3008, "interface: 127.0.0.1\nmaster_id: n\ncache: mmap_cache\nmaster_job_cache: salt_cache\n"))
	if len(both) != 2 || both[0].Fatal || both[1].Fatal {
		t.Errorf("%+v", both)
	}
}

func TestRefusedDropIns(t *testing.T) {
	for _, o := range []DropInOptions{
		{MasterID: "n", Interface: "0.0.0.0"}, {MasterID: "n", Interface: "host"}, {}, {MasterID: "a\nb: c"},
	} {
		if _, err := DropIn(o); !errors.Is(err, ErrDropIn) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestConfigErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a: [":                           "line",
		"- list":                         "mapping",
		"a: 1\na: 2\n":                   "conflicting ID 'a'",
		"sock_dir: 5":                    "sock_dir",
		"publish_port: x":                "not a port number",
		"interface: [1]":                 "interface",
		"a: !!python/x 1":                "constructor",
		"--- 1\n--- 2\n":                 "second document",
		"id_function: m.f":               "",
		"publish_signing_algorithm: MD5": "publish_signing_algorithm",
	} {
		path := filepath.Join(t.TempDir(), "master")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		if _, err := LoadConfig(path, Version{Major: 3007}); want != "" &&
			(err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := LoadConfig("/nonexistent", Version{Major: 3005}); err == nil {
		t.Error("3005 has no defaults here")
	}
}

func TestParseYAML_Bomb(t *testing.T) {
	text := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 1; i < 9; i++ {
		prev, this := string(rune('0'+i-1)), string(rune('0'+i))
		text += "a" + this + ": &a" + this + " [" + strings.TrimSuffix(strings.Repeat("*a"+prev+", ", 10), ", ") + "]\n"
	}
	if _, err := parseYAML([]byte(text)); err == nil {
		t.Error("accepted")
	}
}

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]string{
		"salt-master 3006.28 (Sulfur)\n": "3006.28", "3008.3": "3008.3", "v3007.15": "3007.15", "3007": "3007",
		"Salt Version:\n          Salt: 3008.3\n\nPython Version:\n": "3008.3", "3006.9+12.gabc": "3006.9+12.gabc",
	} {
		if v, err := ParseVersion(text); err != nil || v.Text != want {
			t.Errorf("%q: %v, %v", text, v, err)
		}
	}
	for _, text := range []string{"", "salt 2019.2.0", "3005.1", "3009.0", "x3006.1"} {
		if v, err := ParseVersion(text); !errors.Is(err, ErrVersion) {
			t.Errorf("%q: %v, %v", text, v, err)
		}
	}
}

func TestDetectVersion_NoCommand(t *testing.T) {
	for cmd, missing := range map[string]bool{
		"/nonexistent/salt-master": true, "no-salt-master-of-this-name": true, "": false, "/bin/false": false, "/bin/echo hello": false,
	} {
		v, err := DetectVersion(t.Context(), cmd)
		if err == nil || strings.HasPrefix(err.Error(), "no executable program "+cmd+" on this host: install Salt") != missing {
			t.Errorf("%q: %v, %v", cmd, v, err)
		}
	}
}

func TestConfig_ForMinions(t *testing.T) {
	for text, want := range map[string]string{
		"":                 "map[zeromq:[4505 4506]]",
		"transport: tcp\n": "map[tcp:[4505 4506]]",
		"transport_opts: {tcp: {publish_port: 4605, ret_port: '4606'}, ws: null}\n": "map[tcp:[4605 4606] ws:[4505 4506] zeromq:[4505 4506]]",
		"transport: tcp\ntransport_opts: {tcp: {ret_port: x}}\npublish_port: 1\n":   "map[tcp:[1 4506]]",
	} {
		if got := fmt.Sprint(loadText(t, 3008, text).ForMinions()); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
