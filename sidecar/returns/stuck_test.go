package returns

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/spool"
)

const otherJID = "20261121040506000002"

// jobDir is where the job cache of a node has a job.
func (w *world) jobDir(id, jid string) string {
	sum := sha256.Sum256([]byte(jid))
	name := hex.EncodeToString(sum[:])
	return filepath.Join(w.dir, id, "cache", "jobs", name[:2], name[2:])
}

// TestStuckJob: one job that cannot be written holds up no other, also after a restart, and is written when it can be.
func TestStuckJob(t *testing.T) {
	w := newWorld(t)
	dir := w.jobDir("a", jid)
	require.NoError(t, os.MkdirAll(filepath.Dir(dir), 0o755))
	require.NoError(t, os.WriteFile(dir, nil, 0o644)) // no directory
	s := w.service("a")
	s.stuckAfter = 0
	require.NoError(t, s.Open(t.Context()))
	must(t, func(done func([]byte, error)) { s.Take(request(t, "web1"), done) })
	must(t, func(done func([]byte, error)) { s.Take(request(t, "web2", "jid", otherJID), done) })
	patience.WaitFor(t, "the other job", func() bool { return s.cache().Has(otherJID, "web2") })
	check.Equal(t, pending(s, stuckName), 1, "put aside")
	patience.WaitFor(t, "the events", func() bool { return s.Unfired() == 0 })
	if n := s.Unstored(); n != 1 {
		t.Errorf("%d are in the journals alone", n)
	}
	require.NoError(t, s.Close())
	require.NoError(t, os.Remove(dir))
	s = w.open("a")
	patience.WaitFor(t, "the job", func() bool { return s.cache().Has(jid, "web1") && pending(s, stuckName) == 0 })
}

// TestNotStuck: what concerns all jobs puts none aside.
func TestNotStuck(t *testing.T) {
	w := newWorld(t)
	s := w.open("a")
	s.stuck.s.stuckAfter = 0
	for _, err := range []error{
		syscall.ENOSPC, &os.PathError{Op: "mkdir", Path: "jobs", Err: syscall.EROFS}, spool.ErrHangs,
	} {
		if got := s.stuck.putStuckAside(t.Context(), spool.Record{Seq: 1}, err); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
	jobs := filepath.Join(w.dir, "a", "cache", "jobs")
	require.NoError(t, os.WriteFile(jobs, nil, 0o644))
	if got := s.stuck.putStuckAside(t.Context(), spool.Record{Seq: 1}, syscall.ENOTDIR); got != syscall.ENOTDIR {
		t.Errorf("the job cache is no directory: %v", got)
	}
	check.Equal(t, pending(s, stuckName), 0, "put aside")
}
