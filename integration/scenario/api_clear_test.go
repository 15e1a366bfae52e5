//go:build integration

package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// clearClient does what Salt's own Python client can do on another host than the master's: its commands go in clear to
// the master's request port, here the load balancer's. It prints what came of each, by name.
const clearClient = `import json, sys
import salt.auth, salt.client, salt.config, salt.netapi, salt.runner, salt.wheel

conf, token = sys.argv[1], sys.argv[2]
opts = salt.config.client_config(conf)
who = {"username": "fred", "password": "secret", "eauth": "sharedsecret"}


def token_of():
    return salt.auth.Resolver(opts).mk_token(dict(who))["token"]


def publish(**who):
    return salt.client.LocalClient(conf).cmd_async("*", "test.ping", **who)


commands = {
    "mk_token": token_of,
    "publish": lambda: publish(**who),
    "publish by token": lambda: publish(token=token),
    "salt-api": lambda: salt.netapi.NetapiClient(opts).run(dict(who, client="local_async", tgt="*", fun="test.ping")),
    "runner": lambda: salt.runner.RunnerClient(opts).master_call(fun="test.arg", **who)["jid"],
    "wheel": lambda: salt.wheel.WheelClient(opts).master_call(fun="key.list_all", **who)["data"]["return"]["minions"],
}
out = {}
for name in sys.argv[3:]:
    try:
        out[name] = commands[name]()
    except Exception as err:
        out[name + " fails"] = "%s: %s" % (type(err).__name__, err)
print(json.dumps(out))
`

// testAPIClear: a client on a host in allow_clear_commands publishes through the load balancer, with what it is let do
// only, by password and by a token of whichever node; the results are in the job caches. Another host is refused.
func testAPIClear(t *testing.T, s *apiSite) {
	ctx := t.Context()
	ops, err := s.Lab.Host(ctx, opsHost)
	labtest.Must(t, err)
	for i, m := range s.Minions { // for their versions of Salt
		got := s.runClear(t, ops, m, "", "mk_token", "publish", "runner", "wheel", "salt-api")
		token, _ := got["mk_token"].(string)
		jid, _ := got["publish"].(string)
		if token == "" || jid == "" || got["runner"] == nil {
			t.Fatalf("the client of Salt %s: %v", m.Version, got)
		}
		if got["wheel"] != nil {
			t.Errorf("wheel is not in allow_clear_commands: %v", got)
		}
		if why := fmt.Sprint(got["salt-api fails"]); !strings.Contains(why, "Salt Master is not available") {
			t.Errorf("salt-api of Salt %s: %v", m.Version, got)
		}
		inCacheOf(t, s.Cluster, s.Nodes[i], jid, time.Minute, s.IDs()...)
		labtest.Must(t, lab.Eventually(ctx, time.Minute, "a job by the token", func(context.Context) error {
			got := s.runClear(t, ops, m, token, "publish by token")
			if got["publish by token"] == nil {
				return fmt.Errorf("%v", got)
			}
			return nil
		}))
		all := []string{"mk_token", "publish", "publish by token", "runner", "wheel"}
		got = s.runClear(t, m.Host(), m, token, all...)
		for _, name := range all {
			if got[name+" fails"] == nil {
				t.Errorf("%s of Salt %s on a host that is not in allow_clear_commands: %v", name, m.Version, got)
			}
		}
	}
}

// opsHost is the host in allow_clear_commands.
const opsHost = "ops"

// runClear runs the client on a host, with the Salt of a minion.
func (s *apiSite) runClear(t *testing.T, on *lab.Host, m *lab.Minion, token string, commands ...string) map[string]any {
	t.Helper()
	dir := filepath.Join(on.Dir(), "client-"+m.Version)
	labtest.Must(t, os.MkdirAll(dir, 0o755))
	conf := filepath.Join(dir, "master")
	settings, err := json.Marshal(map[string]any{ // which is YAML
		"interface": s.LB.Host().Addr, "ipc_mode": "tcp", "root_dir": dir, "timeout": 10,
	})
	labtest.Must(t, err)
	program := filepath.Join(dir, "client.py")
	for path, text := range map[string]string{conf: string(settings), program: clearClient} {
		labtest.Must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	argv := append([]string{"/usr/bin/env", "python3", program, conf, token}, commands...)
	res, err := on.Exec(t.Context(), m.Env(), argv...)
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
	got := map[string]any{}
	if err := json.Unmarshal([]byte(res.Stdout), &got); err != nil {
		t.Fatalf("%v: %s", err, res.Output())
	}
	return got
}

// apiDaemons are the nodes' settings: one host may send some commands in clear, whose address the load balancer tells.
func apiDaemons(lb, ops *lab.Host) lab.Settings {
	set := maps.Clone(apiNodes)
	may := []string{ops.Addr}
	set["allow_clear_commands"] = map[string][]string{"publish": may, "mk_token": may, "runner": may}
	set["proxy_protocol"], set["proxy_protocol_trusted"] = true, []string{lb.Addr}
	return set
}
