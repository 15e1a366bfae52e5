//go:build integration

package scenario

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/integration/play"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
)

// A minion has the key that seals publications, as every minion has, and says a job of its own to a node in all the
// ways that masters tell minions (CVE-2017-7893). Nobody hears it, no minion of any version does it, and each try is
// counted.
func speaksAsMaster(t *testing.T, c *lab.Cluster, m *play.Minion, n *lab.Node) {
	t.Helper()
	ctx := t.Context()
	traces := filepath.Join(c.Lab.Dir(), "as-a-master-"+n.Name)
	jid := "20260102030405000077"
	forged := forgedJob(t, m, jid, traces)
	ear, said := listens(t, m, n), 0
	before := metricSum(t, n, "saltcluster_edge_ended_connections_total", `edge="pub"`, `reason="protocol"`)
	for _, kind := range []string{"SUB", "XSUB", "PUB", "XPUB"} {
		for _, parts := range [][][]byte{{forged}, {[]byte("x"), forged}, {append([]byte{2}, forged...)}} {
			z, err := m.Dial(ctx, n.Addr, "4505", kind)
			if err == nil {
				_ = z.WriteMessage(parts...)
				_, err = z.ReadMessage() // until it is cut off
			}
			if err == nil {
				t.Errorf("%s (%s): %s hears something", n.Name, n.Master.Version, kind)
			}
			if z != nil {
				_ = z.Close()
			}
			said++
		}
	}
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "the tries to be counted", func(context.Context) error {
		if now := metricSum(t, n, "saltcluster_edge_ended_connections_total", `edge="pub"`,
			`reason="protocol"`); now < before+float64(said) {
			return fmt.Errorf("%s: %v of %d", n.Name, now-before, said)
		}
		return nil
	}))
	asked(t, m, n, forged)
	already := len(ear.jobs())
	answered(t, c, n)
	// behind whatever was said before
	labtest.Must(t, lab.Eventually(ctx, time.Minute, "a job of "+n.Name, func(context.Context) error {
		if len(ear.jobs()) == already {
			return errors.New("nothing was heard")
		}
		return nil
	}))
	if jobs := ear.jobs(); slices.Contains(jobs, jid) {
		t.Errorf("%s (%s): of jobs, %v were heard", n.Name, n.Master.Version, jobs)
	}
	if made, _ := filepath.Glob(traces + "*"); len(made) > 0 {
		t.Errorf("%s (%s): %v was made", n.Name, n.Master.Version, made)
	}
}

// forgedJob is a publication as masters make them, but by a minion: each minion that believed it would make a file.
func forgedJob(t *testing.T, m *play.Minion, jid, traces string) []byte {
	t.Helper()
	crypticle := saltcrypt.NewCrypticle(m.Secrets().AES)
	plain, err := saltwire.AppendAny(nil, map[string]any{
		"tgt": "*", "tgt_type": "glob", "fun": "file.touch", "arg": []any{traces}, "jid": jid, "ret": "", "user": "root",
		"serial": int64(1) << 62,
	}, saltwire.Wire)
	labtest.Must(t, err)
	body := saltwire.AppendPub(nil, crypticle.Seal(nil, plain, nil), nil, "")
	if got := jobIn(crypticle, body); got != jid {
		t.Fatalf("no minion could read what is forged: %q", got)
	}
	return body
}

// jobIn is the id of the job in a publication, empty when it cannot be opened.
func jobIn(crypticle *saltcrypt.Crypticle, body []byte) string {
	env, err := saltwire.ParsePub(body)
	if err != nil {
		return ""
	}
	plain, err := crypticle.Open(nil, env.Load)
	if err != nil {
		return ""
	}
	p, err := saltwire.PeekPub(plain)
	if err != nil {
		return ""
	}
	return p.JID
}

// heard is which jobs a subscriber could read.
type heard struct {
	mu   sync.Mutex
	jids []string
}

func (h *heard) jobs() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.jids)
}

// listens subscribes at a node until the test ends.
func listens(t *testing.T, m *play.Minion, n *lab.Node) *heard {
	t.Helper()
	z, err := m.Dial(t.Context(), n.Addr, "4505", "SUB")
	labtest.Must(t, err)
	t.Cleanup(func() { _ = z.Close() })
	labtest.Must(t, z.Subscribe(nil))
	crypticle, h := saltcrypt.NewCrypticle(m.Secrets().AES), &heard{}
	go func() { // ends with the connection
		for {
			parts, err := z.ReadMessage()
			if err != nil {
				return
			}
			if jid := jobIn(crypticle, parts[len(parts)-1]); jid != "" {
				h.mu.Lock()
				h.jids = append(h.jids, jid)
				h.mu.Unlock()
			}
		}
	}()
	return h
}

// asked says the same at 4506, as it is and as what it would be if it were a request, and wants it refused.
func asked(t *testing.T, m *play.Minion, n *lab.Node, forged []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	before := metricSum(t, n, "saltcluster_minion_refused_requests_total")
	asRequest, err := saltwire.AppendAny(nil, map[string]any{"enc": "clear", "version": 3, "load": map[string]any{
		"cmd": "publish", "fun": "test.ping", "tgt": "*", "tgt_type": "glob", "arg": []any{}, "jid": "", "ret": "",
		"user": "root", "key": "x",
	}}, saltwire.Wire)
	labtest.Must(t, err)
	all := [][]byte{forged, asRequest}
	for _, body := range all {
		z, err := m.Dial(ctx, n.Addr, "4506", "REQ")
		labtest.Must(t, err)
		labtest.Must(t, z.WriteMessage(nil, body))
		parts, err := z.ReadMessage()
		if err != nil || string(parts[len(parts)-1]) != string(saltwire.BadLoad()) {
			t.Errorf("%s (%s): answered %q, %v", n.Name, n.Master.Version, parts, err)
		}
		_ = z.Close()
	}
	if now := metricSum(t, n, "saltcluster_minion_refused_requests_total"); now < before+float64(len(all)) {
		t.Errorf("%s (%s): %v of %d were counted", n.Name, n.Master.Version, now-before, len(all))
	}
}

// answered has every minion answer a job of a node.
func answered(t *testing.T, c *lab.Cluster, n *lab.Node) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), time.Minute, "all minions to answer "+n.Name,
		func(ctx context.Context) error {
			got, err := n.Master.Pub(ctx, "*", "test.ping")
			if err != nil {
				return err
			}
			return lab.AnsweredBy(got, c.IDs()...)
		}))
}
