package recovery

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/integration/require"
)

func formerEntry(id node.ID) node.Entry {
	return node.Entry{
		ID: id, Addr: netip.MustParseAddrPort("10.0.0.9:4520"), Fingerprint: node.Fingerprint(strings.Repeat("f", 64)),
	}
}

func TestAddFormer(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	for _, dropped := range [][]node.Entry{
		{formerEntry("m1"), formerEntry("m2")}, {formerEntry("m2"), formerEntry("m3")},
	} {
		require.NoError(t, addFormer(dir, "m1", dropped, log))
	}
	f, err := readFormer(dir)
	if err != nil || f.Version != formerVersion || len(f.Members) != 2 || f.Members[0] != formerEntry("m2") ||
		f.Members[1] != formerEntry("m3") {
		t.Errorf("%+v, %v", f, err)
	}
	require.NoError(t, os.WriteFile(membership.FormerPath(dir), []byte("{"), 0o600))
	if _, err := readFormer(dir); err == nil {
		t.Error("a damaged file is read")
	}
	require.NoError(t, addFormer(dir, "m1", []node.Entry{formerEntry("m4")}, log))
	if f, err := readFormer(dir); err != nil || len(f.Members) != 1 {
		t.Errorf("after a damaged file: %+v, %v", f, err)
	}
}

// TestFormer_Run has two former members, which answer differently over time and join again one after the other.
func TestFormer_Run(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
		require.NoError(t, addFormer(dir, "m1", []node.Entry{formerEntry("m4"), formerEntry("m5")}, log))
		l := newLog(t)
		var mu sync.Mutex
		answers := map[node.ID]peer.Standing{"m4": {}, "m5": {Member: true}}
		var failure error
		answer := func(m4, m5 peer.Standing, err error) {
			mu.Lock()
			defer mu.Unlock()
			answers["m4"], answers["m5"], failure = m4, m5, err
		}
		f := NewFormer(FormerConfig{
			ClusterID: "lab", StateDir: dir, View: l.View, Logger: log,
			Ask: func(_ context.Context, e node.Entry) (peer.Standing, error) {
				mu.Lock()
				defer mu.Unlock()
				return answers[e.ID], failure
			},
		})
		want := func(what string, nodes ...string) {
			t.Helper()
			var got []string
			for _, p := range f.Problems() {
				got = append(got, p.Node)
			}
			if strings.Join(got, " ") != strings.Join(nodes, " ") {
				t.Errorf("%s: problems with %v", what, got)
			}
		}
		want("before")
		done := make(chan struct{})
		go func() {
			defer close(done)
			f.Run(t.Context())
		}()
		synctest.Wait()
		want("one belongs to another cluster", "m4")
		answer(peer.Standing{}, peer.Standing{}, errors.New("unreachable"))
		time.Sleep(formerInterval)
		synctest.Wait()
		want("it is down", "m4")
		answer(peer.Standing{}, peer.Standing{}, nil)
		time.Sleep(formerInterval)
		synctest.Wait()
		want("both do", "m4", "m5")
		answer(peer.Standing{}, peer.Standing{Member: true}, nil)
		l.apply(t, addMember("4"))
		time.Sleep(formerInterval)
		synctest.Wait()
		want("one has joined again, the other one asks this node")
		if left, err := readFormer(dir); err != nil || len(left.Members) != 1 {
			t.Errorf("%+v, %v", left, err)
		}
		l.apply(t, addMember("5"))
		time.Sleep(formerInterval)
		<-done
		if _, err := os.Stat(membership.FormerPath(dir)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("former members are still stored: %v", err)
		}
	})
}
