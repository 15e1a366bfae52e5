//go:build integration

package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// tokenUser may do what clusterMasters' external_auth allows.
const tokenUser = "fred"

// tokenScript does with a token what salt-api does, and takes it away as salt.auth does.
const tokenScript = `
import json, sys
import salt.auth, salt.client, salt.config
path, what, token = sys.argv[1:4]
if what == "revoke":
    salt.auth.LoadAuth(salt.config.master_config(path)).rm_token(token)
else:
    try:
        print(json.dumps(salt.client.LocalClient(path).cmd("*", what, ["x"] if what == "cmd.run" else [], token=token)))
    except Exception as err:
        print(json.dumps({"error": str(err)}))
`

// A token that one master has made works on the masters of all versions, for what its user may do; revoked on one it is
// revoked on all.
func testTokens(t *testing.T, c *lab.Cluster) {
	for i, maker := range c.Nodes {
		token := makeToken(t, maker, c.Minions[0].ID)
		for _, n := range c.Nodes {
			labtest.Must(t, lab.Eventually(t.Context(), 10*time.Second, "token of "+maker.Name+" on "+n.Name, func(ctx context.Context) error {
				return lab.AnsweredBy(useToken(t, n, "test.ping", token), c.IDs()...)
			}))
		}
		if got := useToken(t, maker, "cmd.run", token); got["error"] == nil {
			t.Errorf("%s may do more than his token allows: %v", tokenUser, got)
		}
		on := c.Nodes[(i+1)%len(c.Nodes)]
		useToken(t, on, "revoke", token)
		for _, n := range c.Nodes {
			labtest.Must(t, lab.Eventually(t.Context(), 10*time.Second, "revoked on "+n.Name, func(context.Context) error {
				if names, err := filepath.Glob(filepath.Join(n.Master.CacheDir(), "tokens", token+"*")); err != nil || len(names) > 0 {
					return fmt.Errorf("%v, %w", names, err)
				}
				return nil
			}))
		}
		if got := useToken(t, c.Nodes[(i+2)%len(c.Nodes)], "test.ping", token); got["error"] == nil {
			t.Errorf("a token of %s that was revoked on %s is taken: %v", maker.Name, on.Name, got)
		}
	}
	for _, n := range c.Nodes {
		if n.Daemon.Logged(tokenUser) {
			t.Errorf("saltclusterd of %s tells about tokens", n.Name)
		}
	}
}

// makeToken logs in on a master as people do.
func makeToken(t *testing.T, n *lab.Node, minion string) string {
	t.Helper()
	home := t.TempDir()
	res, err := n.Exec(t.Context(), n.Master.Env(), "/usr/bin/env", "HOME="+home, "salt", "-T", "-a", "auto",
		"--username="+tokenUser, "--password=any", "--out=json", "--static", minion, "test.ping")
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
	raw, err := os.ReadFile(filepath.Join(home, "salt_token"))
	labtest.Must(t, err)
	return strings.TrimSpace(string(raw))
}

// useToken runs a function with a token on a master, or takes it away there.
func useToken(t *testing.T, n *lab.Node, what, token string) map[string]any {
	t.Helper()
	res, err := n.Exec(t.Context(), n.Master.Env(), "/usr/bin/env", "python3", "-c", tokenScript,
		filepath.Join(n.Master.ConfigDir, "master"), what, token)
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
	out := map[string]any{}
	if what != "revoke" {
		if err := json.Unmarshal([]byte(res.Stdout), &out); err != nil {
			t.Fatalf("%s: %v\n%s", n.Name, err, res.Output())
		}
	}
	return out
}
