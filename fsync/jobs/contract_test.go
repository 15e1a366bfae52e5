package jobs

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"saltclusterd/fsync/replica"
	"saltclusterd/fsync/replica/replicatest"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
)

// subject is jobs for the contract. An item is a job with one return; version 2 has a list of more minions.
type subject struct{ disk disk }

func TestContract(t *testing.T) {
	replicatest.Run(t, func() replicatest.Subject { return subject{newDisk(Master{HashType: "sha256"})} })
}

func (subject) Traits() replicatest.Traits {
	newer := append([]byte(tableMagic), tableVersion+1) // what stands behind it, its sum included, may have another form
	newer = append(newer, "of a later version"...)
	return replicatest.Traits{Replaces: true, Local: true, MaxBody: MaxBody, Table: tableName, Newer: newer}
}

func (subject) New(cfg replica.Config, dir string, off bool) (replicatest.Store, error) {
	digest := cfg.Pace.Digest
	self := node.ID("self")
	c := quick(cfg, self, filepath.Join(dir, "cache"))
	if err := os.MkdirAll(c.Master.CacheDir, 0o755); err != nil {
		return nil, err
	}
	c.Pace.Digest, c.Master.Booted = digest, time.Now()
	c.Replicas = func(string) []node.ID { return append(cfg.Members(), self) }
	if off {
		c.Master.JobCache = "mysql"
	}
	return New(c)
}

func jidOf(item int) string { return fmt.Sprintf("20260102%012d", item) }

func (s subject) path(dir string, item int) string {
	s.disk.dir = filepath.Join(dir, "cache")
	return s.disk.path(jidOf(item))
}

// minions are those of a version, the list of which is a head file that a later one replaces.
func minions(version int) []byte { return list([]string{"m1", "m2", "m3"}[:version]...) }

func (s subject) Write(t testing.TB, dir string, store replicatest.Store, item, version int) {
	jid, job := jidOf(item), s.path(dir, item)
	for _, f := range []struct {
		name    string
		content []byte
	}{{jidFile, []byte(jid)}, {minionsFile, minions(version)}, {loadFile, load(jid, false)}, {"m1/" + returnFile, ret("one")}} {
		path := filepath.Join(job, f.name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path+".new", f.content, 0o644),
			os.Rename(path+".new", path)); err != nil {
			t.Fatal(err)
		}
	}
	if store != nil {
		store.(*Store).Published(jid)
		store.(*Store).Stored(jid, "m1", Return{Data: ret("one")}, false)
	}
}

func (s subject) Read(_ testing.TB, dir string, item int) int {
	head, _ := os.ReadFile(filepath.Join(s.path(dir, item), minionsFile))
	one, _ := os.ReadFile(filepath.Join(s.path(dir, item), "m1", returnFile))
	for _, version := range []int{1, 2} {
		if bytes.Equal(head, minions(version)) && bytes.Equal(one, ret("one")) {
			return version
		}
	}
	return 0
}

// Remove is a master's cleaning of a job whose time is over.
func (s subject) Remove(t testing.TB, dir string, store replicatest.Store, item int) {
	path, at := s.path(dir, item), time.Now().Add(-23*time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(path, jidFile), at, at))
	patience.WaitFor(t, "the store has seen how old the job is", func() bool {
		j, _ := store.(*Store).index.fresh(jidOf(item))
		return j.at == at.UnixNano()
	})
	replicatest.Lose(t, path)
}

func (s subject) Spoil(t testing.TB, dir string, item int) {
	path := filepath.Join(s.path(dir, item), "m1", returnFile)
	require.NoError(t, os.Truncate(path, 0))
}

func (subject) Lose(t testing.TB, dir string) {
	replicatest.Lose(t, filepath.Join(dir, "cache", "jobs"))
}
