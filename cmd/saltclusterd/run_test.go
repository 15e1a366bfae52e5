package main

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/takeover"
	"saltclusterd/integration/require"
)

// A check for a process that is to be replaced looks at what that does not have; one for an operator looks at the
// configuration only.
func TestCheck(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	dir, addr := t.TempDir(), taken.Addr().String()
	conf := filepath.Join(dir, "conf")
	text := "id: w\ncluster_id: test\ncluster_secret: a-test-secret-0123456789-abcdef\ncluster_interface: 127.0.0.1\ncluster_witness: true\nstate_dir: " + dir +
		"\nadmin_socket: " + dir + "/run/admin.sock\nhealth_listen: " + addr + "\n"
	require.NoError(t, os.WriteFile(conf, []byte(text), 0o600))
	for _, c := range []struct{ replaces, reason string }{
		{"", ""},
		{`[]`, "health_listen: listen tcp " + addr},
		{`[{"Network":"tcp","Addr":"127.0.0.1:1"}]`, "health_listen: listen tcp " + addr},
		{`[{"Network":"tcp","Addr":"` + addr + `"}]`, ""},
		{"nonsense", takeover.ReplacesEnv},
	} {
		t.Setenv(takeover.ReplacesEnv, c.replaces)
		var out bytes.Buffer
		err := run(t.Context(), t.Context(), []string{"--config", conf, "--check"}, &out, &out)
		if c.reason == "" && (err != nil || out.String() != "configuration is valid\n") {
			t.Errorf("%q: %v, %q", c.replaces, err, &out)
		}
		if c.reason != "" && (err == nil || !strings.Contains(err.Error(), c.reason)) {
			t.Errorf("%q: %v", c.replaces, err)
		}
	}
	// the configuration, and a directory for the admin socket
	if left, err := os.ReadDir(dir); err != nil || len(left) > 2 {
		t.Errorf("%v, %v", left, err)
	}
}

// The log names the commands of what manages services here.
func TestNewLogger_Services(t *testing.T) {
	for variable, want := range map[string]string{"runit": "sv restart salt-master", "systemd": "systemctl restart salt-master"} {
		t.Setenv("SALTCLUSTER_SERVICE_MANAGER", variable)
		for _, format := range []string{"text", "json"} {
			var out bytes.Buffer
			log := newLogger(config.Log{Level: "info", Format: format}, new(slog.LevelVar), &out)
			log.Info("x", "hint", "systemctl restart salt-master", "err", errors.New("systemctl restart salt-master"), "n", 1)
			if n := strings.Count(out.String(), want); n != 2 {
				t.Errorf("%s, %s: %s", variable, format, &out)
			}
		}
	}
}
