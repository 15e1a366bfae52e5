package membership

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/integration/require"
)

func TestStore(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(RemovalPath(dir), nil, 0o600))
	entry := func(id node.ID, addr string) node.Entry {
		return node.Entry{ID: id, Addr: netip.MustParseAddrPort(addr),
			Fingerprint: node.Fingerprint(strings.Repeat(string(id[1:])+"b", 32))}
	}
	m1, m2, m3 := entry("m1", "192.0.2.1:4520"), entry("m2", "192.0.2.2:4520"), entry("m3", "192.0.2.3:4520")
	for _, tc := range []struct {
		rev    uint64
		roster []node.Entry
	}{{7, []node.Entry{m1, m2}}, {3, []node.Entry{m3}}} { // the second cluster is younger than the first one was
		require.NoError(t, Store(dir, &Record{UUID: "u", Node: "m1"}, tc.rev, tc.roster))
		book, err := peer.OpenBook(RosterPath(dir))
		if err != nil || book.Rev() != tc.rev || len(book.Entries()) != len(tc.roster) {
			t.Errorf("revision %d: %+v, %v", tc.rev, book, err)
		}
	}
	if r, err := ReadRecord(dir); err != nil || r == nil || r.UUID != "u" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := os.Stat(RemovalPath(dir)); !os.IsNotExist(err) {
		t.Errorf("the node is still marked as removed: %v", err)
	}
}

func TestPutAside(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, PutAside(dir), "nothing to put aside")
	for round := range 2 {
		log := filepath.Join(RaftDir(dir), string(rune('a'+round)))
		for _, path := range []string{log, RosterPath(dir), KeyDirBase(dir), FormerPath(dir), RecordPath(dir)} {
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			require.NoError(t, os.WriteFile(path, nil, 0o600))
		}
		require.NoError(t, PutAside(dir))
		for _, path := range []string{RaftDir(dir), RosterPath(dir), KeyDirBase(dir), FormerPath(dir)} {
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Errorf("round %d: %s: %v", round, path, err)
			}
		}
		kept, err := os.ReadDir(filepath.Join(dir, "raft.left"))
		if err != nil || len(kept) != 1 || kept[0].Name() != filepath.Base(log) {
			t.Errorf("round %d: %v, %v", round, kept, err)
		}
	}
	if _, err := os.Stat(RecordPath(dir)); err != nil {
		t.Error(err)
	}
}
