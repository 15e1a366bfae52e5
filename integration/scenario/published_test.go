//go:build integration

package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// twin is a real minion's identity in the hands of the test, which says what its module publish says, to the node it
// likes.
func twin(t *testing.T, c *lab.Cluster, m *lab.Minion) *byteMinion {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(m.PKIDir(), "minion.pem"))
	labtest.Must(t, err)
	key, err := saltcrypt.ParseMasterKey(raw)
	labtest.Must(t, err)
	b := &byteMinion{host: m.Host(), id: m.ID, key: key, enc: saltcrypt.OAEPSHA1, sig: saltcrypt.PKCS1v15SHA1}
	heard, err := b.signIn(t.Context(), c.Nodes[0].Addr)
	labtest.Must(t, err)
	if heard != "accepted" {
		t.Fatalf("%s hears %q", b.id, heard)
	}
	return b
}

// hears sends a sealed command and opens the answer.
func (m *byteMinion) hears(ctx context.Context, n *lab.Node, cmd string, fields map[string]any) (any, error) {
	answer, nonce, err := m.request(ctx, n.Addr, cmd, fields)
	if err != nil {
		return nil, err
	}
	sealed, _ := saltwire.Bytes(answer)
	plain, err := saltcrypt.NewCrypticle(m.got.session).Open(nil, sealed)
	if err != nil {
		return nil, fmt.Errorf("%s: answer of %s to %s (%.50q): %w", m.id, n.Name, cmd, sealed, err)
	}
	rest, ok := bytes.CutPrefix(plain, []byte(nonce))
	if !ok {
		return nil, fmt.Errorf("%s: answer of %s to %s is not to what was asked", m.id, n.Name, cmd)
	}
	v, _, err := msgp.ReadIntfBytes(rest)
	return v, err
}

// publishes has a node's master publish a job for the minion (publish.publish) and returns its id.
func (m *byteMinion) publishes(t *testing.T, n *lab.Node, fun string, args ...any) string {
	t.Helper()
	v, err := m.hears(t.Context(), n, "minion_pub", map[string]any{
		"fun": fun, "arg": args, "tgt": "*", "tgt_type": "glob", "ret": "", "tmo": 5, "form": "full", "no_parse": []any{},
	})
	labtest.Must(t, err)
	job, _ := v.(map[string]any)
	jid, _ := job["jid"].(string)
	if jid == "" {
		t.Fatalf("minion_pub on %s: %v", n.Name, v)
	}
	return jid
}

// returned asks a node what the job has returned until all minions have, as the module publish does.
func (m *byteMinion) returned(t *testing.T, c *lab.Cluster, n *lab.Node, jid string,
	within time.Duration) (all map[string]any) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), within, jid+" by way of "+n.Name, func(ctx context.Context) error {
		v, err := m.hears(ctx, n, "pub_ret", map[string]any{"jid": jid})
		if err != nil {
			return err
		}
		var ok bool
		if all, ok = v.(map[string]any); !ok {
			t.Fatalf("pub_ret on %s: %#v, which a minion's module does not understand", n.Name, v)
		}
		return lab.AnsweredBy(all, c.IDs()...)
	}))
	return all
}

// stockAnswer prints what Salt's own code makes of a job for pub_ret.
const stockAnswer = `
import json, sys
import salt.client
print(json.dumps(salt.client.LocalClient(sys.argv[1]).get_cache_returns(sys.argv[2])))
`

// What a minion has published comes back to it, whichever node it asks, and to nobody else.
func testPublishedByMinions(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	m, other := twin(t, c, c.Minions[0]), twin(t, c, c.Minions[1])
	for i, n := range c.Nodes {
		jid := m.publishes(t, n, "test.arg", "one", 2)
		var first map[string]any
		for k := range c.Nodes {
			asked := c.Nodes[(i+2+k)%len(c.Nodes)] // at first one that may not have heard of it
			all := m.returned(t, c, asked, jid, time.Minute)
			if first == nil {
				first = all
			}
			if !reflect.DeepEqual(all, first) {
				t.Errorf("published on %s: %s says %v, another one %v", n.Name, asked.Name, all, first)
			}
			v, err := other.hears(ctx, asked, "pub_ret", map[string]any{"jid": jid})
			labtest.Must(t, err)
			if none, ok := v.(map[string]any); !ok || len(none) > 0 {
				t.Errorf("published on %s: %s tells another minion %v", n.Name, asked.Name, v)
			}
		}
		res, err := n.Master.Run(ctx, "python", "-c", stockAnswer, n.Master.ConfigDir+"/master", jid)
		labtest.Must(t, err)
		labtest.Must(t, res.Err())
		var stock any
		labtest.Must(t, json.Unmarshal([]byte(res.Stdout), &stock))
		text, err := json.Marshal(first)
		labtest.Must(t, err)
		var ours any
		labtest.Must(t, json.Unmarshal(text, &ours))
		if !reflect.DeepEqual(ours, stock) {
			t.Errorf("published on %s: answered %v, stock %v", n.Name, ours, stock)
		}
		v, err := m.hears(ctx, n, "pub_ret", map[string]any{"jid": "20200101000000000000"})
		if v != "" || err != nil {
			t.Errorf("%s, asked for a job that nobody knows: %#v, %v", n.Name, v, err)
		}
	}
}
