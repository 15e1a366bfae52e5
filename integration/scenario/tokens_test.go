//go:build integration

package scenario

import (
	"context"
	"encoding/json"
	"errors"
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

// tokenScript does with tokens what salt-api does.
const tokenScript = `
import json, sys
import salt.client
client = salt.client.LocalClient(sys.argv[1])
out = []
for token in sys.argv[3:]:
    for fun, arg in ("test.ping", []), ("cmd.run", ["true"]):
        try:
            out.append(client.cmd(sys.argv[2], fun, arg, token=token))
        except Exception as err:
            out.append({"error": str(err)})
print(json.dumps(out))
`

// Tokens that each master has made work on the masters of all versions, for what their user may do; revoked on one they
// are revoked on all.
func testTokens(t *testing.T, c *lab.Cluster) {
	id := c.Minions[0].ID
	var tokens []string
	for _, n := range c.Nodes {
		tokens = append(tokens, makeToken(t, n, id))
	}
	for _, n := range c.Nodes {
		labtest.Must(t, lab.Eventually(t.Context(), 10*time.Second, "tokens on "+n.Name, func(context.Context) error {
			return tokenFiles(n, tokens, len(tokens))
		}))
		for i, got := range useTokens(t, n, id, tokens) {
			if may := i%2 == 0; may != (got[id] == true) || may == (got["error"] != nil) {
				t.Errorf("token of %s on %s: %v", c.Nodes[i/2].Name, n.Name, got)
			}
		}
	}
	for _, n := range c.Nodes { // twice: what is put back at once does not pass
		for range 2 {
			res, err := n.Master.Run(t.Context(), "python", "-c", sweepTokens, n.Master.ConfigDir+"/master")
			labtest.Must(t, err)
			labtest.Must(t, res.Err())
			labtest.Must(t, tokenFiles(n, tokens, len(tokens)))
		}
	}
	damagedTokens(t, c, tokens)
	for i, token := range tokens {
		n := c.Nodes[(i+1)%len(c.Nodes)]
		if n.Master.Version >= "3008" {
			token += ".p" // salt/runners/auth.py does not know how 3008 names the file
		}
		res, err := n.Master.Run(t.Context(), "salt-run", "auth.del_token", token)
		labtest.Must(t, err)
		labtest.Must(t, res.Err())
	}
	for _, n := range c.Nodes {
		labtest.Must(t, lab.Eventually(t.Context(), 10*time.Second, "tokens revoked on "+n.Name, func(context.Context) error {
			return tokenFiles(n, tokens, 0)
		}))
	}
	last := c.Nodes[len(c.Nodes)-1]
	for i, got := range useTokens(t, last, id, tokens) {
		if got["error"] == nil {
			t.Errorf("revoked token of %s on %s: %v", c.Nodes[i/2].Name, last.Name, got)
		}
	}
	for _, n := range c.Nodes {
		for _, token := range append(tokens, tokenUser) {
			if n.Daemon.Logged(token) {
				t.Errorf("saltclusterd of %s tells about tokens", n.Name)
			}
		}
	}
}

// sweepTokens is what a master's maintenance does once a minute. It takes the tokens of all only with 3008.0 and 3008.1
// (make test-releases).
const sweepTokens = `
import sys
import salt.config, salt.daemons.masterapi
salt.daemons.masterapi.clean_expired_tokens(salt.config.master_config(sys.argv[1]))
`

// damagedTokens cuts a token's file on each master; the others have it, and each gets it back.
func damagedTokens(t *testing.T, c *lab.Cluster, tokens []string) {
	t.Helper()
	for i, n := range c.Nodes {
		labtest.Must(t, os.Truncate(tokenFile(t, n, tokens[i]), 20))
	}
	for i, n := range c.Nodes {
		labtest.Must(t, lab.Eventually(t.Context(), 2*time.Minute, "the token that was cut on "+n.Name,
			func(context.Context) error {
				names, err := filepath.Glob(filepath.Join(n.Master.CacheDir(), "tokens", tokens[i]+"*"))
				if err != nil || len(names) != 1 {
					return errors.Join(fmt.Errorf("%d files", len(names)), err)
				}
				info, err := os.Stat(names[0])
				if err == nil && info.Size() == 20 {
					err = errors.New("still cut")
				}
				return err
			}))
	}
}

// tokenFiles says whether a master has the files of so many tokens.
func tokenFiles(n *lab.Node, tokens []string, want int) error {
	have := 0
	for _, token := range tokens {
		names, err := filepath.Glob(filepath.Join(n.Master.CacheDir(), "tokens", token+"*"))
		if err != nil {
			return err
		}
		have += len(names)
	}
	if have != want {
		return fmt.Errorf("%d of %d", have, want)
	}
	return nil
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

// useTokens runs test.ping and cmd.run with each token on a master.
func useTokens(t *testing.T, n *lab.Node, id string, tokens []string) (out []map[string]any) {
	t.Helper()
	res, err := n.Exec(t.Context(), n.Master.Env(), append([]string{
		"/usr/bin/env", "python3", "-c", tokenScript, filepath.Join(n.Master.ConfigDir, "master"), id,
	}, tokens...)...)
	labtest.Must(t, err)
	labtest.Must(t, res.Err())
	if err := json.Unmarshal([]byte(res.Stdout), &out); err != nil || len(out) != 2*len(tokens) {
		t.Fatalf("%s: %v\n%s", n.Name, err, res.Output())
	}
	return out
}
