package wording

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

// Where there is no systemd no hint names its programs.
func TestServices_Adapt(t *testing.T) {
	const away = "systemctl status saltclusterd; journalctl -u saltclusterd -n 50 says why it ended"
	for _, c := range []struct {
		is         Services
		text, want string
	}{
		{systemd, away, away},
		{openRC, away, "rc-service saltclusterd status; tail -n 50 /var/log/saltclusterd.log says why it ended"},
		{runit, away, "sv status saltclusterd; tail -n 50 /var/log/saltclusterd/current says why it ended"},
		{noneManages, away, "check whether saltclusterd is running; the standard error of saltclusterd says why it ended"},
		{openRC, "systemctl enable --now saltclusterd: it starts", "rc-update add saltclusterd; rc-service saltclusterd start: it starts"},
		{runit, "correct it; then: systemctl start salt-master saltclusterd", "correct it; then: sv up salt-master; sv up saltclusterd"},
		{runit, "systemctl disable --now saltclusterd; systemctl restart salt-master",
			"sv down saltclusterd; rm /etc/service/saltclusterd; sv restart salt-master"},
		{noneManages, "systemctl daemon-reload; systemctl restart saltclusterd", "restart saltclusterd"},
		{noneManages, "saltclusterctl status --check", "saltclusterctl status --check"},
	} {
		check.Equal(t, c.is.Adapt(c.text), c.want, c.is)
	}
	for is, verbs := range serviceCommands {
		for _, verb := range []string{"enable --now", "disable --now", "start", "stop", "restart", "reload", "status"} {
			if !strings.Contains(verbs[verb], "%s") {
				t.Errorf("%s: no command for %s", is, verb)
			}
		}
	}
}

func TestFindServices(t *testing.T) {
	for path, want := range map[string]Services{
		"": noneManages, "run/systemd/system": systemd, "run/openrc": openRC, "run/runit": runit, "etc/runit": runit,
	} {
		root := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Join(root, path), 0o755))
		check.Equal(t, findServices(root, ""), want, "with", path)
	}
	for variable, want := range map[string]Services{"systemd": systemd, "openrc": openRC, "runit": runit, "none": noneManages} {
		check.Equal(t, findServices(t.TempDir(), variable), want, "with", servicesVariable, "=", variable)
	}
}

// What is said has the commands of this host; data, and the names of fields, stay as they are.
func TestServices_AdaptJSON(t *testing.T) {
	const text = `{
  "hint": "systemctl start salt-master",
  "next": ["say \"so\"; systemctl stop saltclusterd", {"arg": ["systemctl stop salt-master"]}, "systemctl stop saltclusterd"],
  "arg": "systemctl stop salt-master", "systemctl stop salt-master": 1
}`
	const want = `{
  "hint": "sv up salt-master",
  "next": ["say \"so\"; sv down saltclusterd", {"arg": ["systemctl stop salt-master"]}, "sv down saltclusterd"],
  "arg": "systemctl stop salt-master", "systemctl stop salt-master": 1
}`
	check.Equal(t, string(runit.AdaptJSON([]byte(text))), want)
	check.Equal(t, string(systemd.AdaptJSON([]byte(text))), text, "with systemd")
	for _, broken := range []string{`{"hint": "systemctl x`, `}}{"systemctl `, `"systemctl \`} {
		if got := string(runit.AdaptJSON([]byte(broken))); got != broken {
			t.Errorf("%q: %q", broken, got)
		}
	}
}
