//go:build integration

package scenario

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"saltclusterd/integration/check"
	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/fileserve/fileservetest"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// asMinion speaks with the key of a stock minion.
func asMinion(t *testing.T, m *lab.Minion) *byteMinion {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(m.PKIDir(), "minion.pem"))
	labtest.Must(t, err)
	key, err := saltcrypt.ParseMasterKey(text)
	labtest.Must(t, err)
	return &byteMinion{host: m.Host(), id: m.ID, key: key, enc: saltcrypt.OAEPSHA1, sig: saltcrypt.PKCS1v15SHA1}
}

// asked sends a request and returns what stands in the answer; "bad load" and the like are errors.
func (m *byteMinion) asked(ctx context.Context, addr, cmd string, fields map[string]any) ([]byte, error) {
	answer, nonce, err := m.request(ctx, addr, cmd, fields)
	if err != nil {
		return nil, err
	}
	sealed, _ := saltwire.Bytes(answer)
	plain, err := saltcrypt.NewCrypticle(m.got.session).Open(nil, sealed)
	if err != nil {
		return nil, fmt.Errorf("%s: %s at %s: %w: %.40q", m.id, cmd, addr, err, answer)
	}
	rest, ok := bytes.CutPrefix(plain, []byte(nonce))
	if !ok {
		return nil, fmt.Errorf("%s: %s at %s: another nonce", m.id, cmd, addr)
	}
	return rest, nil
}

// chunk asks for one.
func (m *byteMinion) chunk(t *testing.T, n *lab.Node, path string, loc int) string {
	t.Helper()
	reply, err := m.asked(t.Context(), n.Addr, "_serve_file", map[string]any{"path": path, "saltenv": "base", "loc": loc})
	labtest.Must(t, err)
	v, err := fileservetest.Decode(reply)
	labtest.Must(t, err)
	fields, _ := v.(map[string]any)
	data, _ := fields["data"].(string)
	return data
}

// servedHere counts the questions for files, of one command where labels say so, that a node has answered without its
// master.
func servedHere(t *testing.T, n *lab.Node, labels ...string) float64 {
	t.Helper()
	return metricSum(t, n, "saltcluster_fileserve_requests_total", append(labels, `outcome="here"`)...)
}

// Files are served without the master's Python: as it would, from one version during a transfer, and while it is down.
func testFiles(t *testing.T, c *lab.Cluster) {
	ctx := t.Context()
	for _, n := range c.Nodes {
		var st adminapi.Status
		labtest.Must(t, n.Daemon.CtlJSON(ctx, &st, "status"))
		if f := st.Node.Files; f == nil || f.Path != adminapi.PathNative || f.Reason != "" {
			t.Fatalf("%s serves files so: %+v", n.Name, f)
		}
	}
	first, m := c.Nodes[0], asMinion(t, c.Minions[0])
	big := make([]byte, 2_500_000)
	rand.Read(big)
	writeRoot(t, first, "served/big", string(big), 0o644)
	writeRoot(t, first, "served/dir/script", "#!/bin/sh\n", 0o755)
	writeRoot(t, first, "served/empty", "", 0o644)
	labtest.Must(t, os.Symlink("../empty", inRoots(first, "served/dir/link")))
	labtest.Must(t, os.MkdirAll(inRoots(first, "served/void"), 0o755))
	rootsSettled(t, c)
	heard, err := m.signIn(ctx, first.Addr)
	if err != nil || heard != "accepted" {
		t.Fatalf("%s hears %s, %v", m.id, heard, err)
	}
	for _, n := range c.Nodes {
		t.Run(n.Name, func(t *testing.T) { sameByPython(t, n, m) })
	}
	t.Run("a file is replaced during its transfer", func(t *testing.T) { replacedMeanwhile(t, c, m, big) })
	t.Run("the master is down", func(t *testing.T) { servedWithoutMaster(t, c, m) })
}

// sameByPython compares what a node answers by itself with what its master answers to the same. A field that no master
// looks at makes saltclusterd leave a request to it.
func sameByPython(t *testing.T, n *lab.Node, m *byteMinion) {
	before, asked := servedHere(t, n), 0.
	corpus := &fileservetest.Corpus{Dir: n.Master.FileRoot()}
	for _, path := range []string{"served/big", "served/dir/script", "served/empty", "served/dir/link", "served/void",
		"served/missing", "top.sls"} {
		for cmd, fields := range map[string]map[string]any{
			"_file_find": {}, "_file_hash": {}, "_file_hash_and_stat": {}, "_serve_file": {"loc": 1 << 20}, "_file_list": {},
			"_dir_list":            {"prefix": "served"},
			"_file_list_emptydirs": {}, "_symlink_list": {}, "_file_envs": {},
		} {
			fields["path"], fields["saltenv"] = path, "base"
			ours, err := m.asked(t.Context(), n.Addr, cmd, fields)
			labtest.Must(t, err)
			asked++
			fields["sources"] = false
			theirs, err := m.asked(t.Context(), n.Addr, cmd, fields)
			labtest.Must(t, err)
			got := corpus.Render(t, cmd, ours, fileservetest.AllFigures)
			if want := corpus.Render(t, cmd, theirs, fileservetest.AllFigures); got != want {
				t.Errorf("%s of %s:\nours  %s\nstock %s", cmd, path, got, want)
			}
		}
	}
	if here := servedHere(t, n) - before; here < asked {
		t.Errorf("%v of %v questions were answered without the master", here, asked)
	}
}

func replacedMeanwhile(t *testing.T, c *lab.Cluster, m *byteMinion, old []byte) {
	at, editor := c.Nodes[1], c.Nodes[2]
	got := m.chunk(t, at, "served/big", 0)
	writeRoot(t, editor, "served/big", strings.Repeat("new", 800_000), 0o644)
	onNodes(t, c.Nodes, "the new file", holds("served/big", strings.Repeat("new", 800_000)))
	for {
		data := m.chunk(t, at, "served/big", len(got))
		if data == "" {
			break
		}
		got += data
	}
	if got != string(old) {
		t.Errorf("%d bytes arrived, which are not those of the file that the transfer began with", len(got))
	}
	check.Equal(t, m.chunk(t, at, "served/big", 0)[:3], "new", "the next transfer is not of the new file")
}

// servedWithoutMaster lets a real minion fetch a directory through a node without master.
func servedWithoutMaster(t *testing.T, c *lab.Cluster, m *byteMinion) {
	ctx, n := t.Context(), c.Nodes[1]
	labtest.Must(t, n.Master.Kill())
	defer func() {
		labtest.Must(t, n.Master.Start(ctx))
		labtest.Must(t, n.Master.WaitReady(ctx, 3*time.Minute))
	}()
	before := servedHere(t, n, `command="_serve_file"`)
	check.Equal(t, m.chunk(t, n, "served/big", 0)[:3], "new", "not served")
	if servedHere(t, n, `command="_serve_file"`) == before {
		t.Error("another node served it")
	}
}

// TestFiles asks masters of each version and ours the whole corpus.
func TestFiles(t *testing.T) {
	if os.Getenv("SALTCLUSTER_LONG") == "" {
		t.Skip("takes minutes; make test-files")
	}
	corpus := fileservetest.New(t)
	var settings lab.Settings
	labtest.Must(t, yaml.Unmarshal([]byte(corpus.Fill(fileservetest.Settings[0].Config)), &settings))
	settings["auto_accept"] = true
	l := labtest.New(t, lab.Options{})
	c, err := l.NewCluster(t.Context(), lab.ClusterSpec{
		Masters: lab.Versions, MasterSettings: settings, DaemonSettings: lab.Settings{"cluster_roots_sync": "off"},
	})
	labtest.Must(t, err)
	labtest.Must(t, c.Form(t.Context()))
	key, err := saltcrypt.GenerateMasterKey(2048)
	labtest.Must(t, err)
	for _, n := range c.Nodes {
		t.Run(n.Master.Version, func(t *testing.T) {
			m := &byteMinion{host: n.Host, id: "web1", key: key, enc: saltcrypt.OAEPSHA1, sig: saltcrypt.PKCS1v15SHA1}
			labtest.Must(t, lab.Eventually(t.Context(), 3*time.Minute, "the master accepts the key",
				func(ctx context.Context) error {
					heard, err := m.signIn(ctx, n.Addr)
					if err == nil && heard != "accepted" {
						err = fmt.Errorf("%s", heard)
					}
					return err
				}))
			corpusBothWays(t, corpus, n, m)
		})
	}
}

// corpusBothWays asks all twice: as minions do, and so that saltclusterd leaves it to the master.
func corpusBothWays(t *testing.T, corpus *fileservetest.Corpus, n *lab.Node, m *byteMinion) {
	ctx := t.Context()
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "the master serves files", func(ctx context.Context) error {
		_, err := m.asked(ctx, n.Addr, "_file_envs", map[string]any{"sources": false})
		return err
	}))
	compared := 0
	for _, one := range fileservetest.Asks() {
		if one.Fields == nil || one.Harms || one.Fields["saltenv"] == fileservetest.Unlistable {
			continue
		}
		ours, err := m.asked(ctx, n.Addr, one.Cmd, one.Fields)
		left := maps.Clone(one.Fields)
		if _, meant := left["sources"]; !meant {
			left["sources"] = false
		}
		theirs, err2 := m.asked(ctx, n.Addr, one.Cmd, left)
		if err != nil || err2 != nil {
			if (err == nil) != (err2 == nil) {
				t.Errorf("%s: ours %v, stock %v", one.Name, err, err2)
			}
			continue
		}
		compared++
		got := corpus.Render(t, one.Cmd, ours, fileservetest.AllFigures)
		if want := corpus.Render(t, one.Cmd, theirs, fileservetest.AllFigures); got != want {
			t.Errorf("%s:\nours  %s\nstock %s", one.Name, got, want)
		}
	}
	t.Logf("%d answers compared", compared)
	if compared < 1000 {
		t.Error("too few")
	}
}
