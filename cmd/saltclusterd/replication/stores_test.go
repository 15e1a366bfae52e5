package replication

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/consensus"
	"saltclusterd/fsync/catchup"
	"saltclusterd/fsync/jobs"
	"saltclusterd/gossip/node"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/hlc"
	"saltclusterd/sidecar/localmaster/configtest"
)

// loneMember is a member without others.
type loneMember struct{}

func (loneMember) OtherMasters() []node.ID            { return nil }
func (loneMember) Sources() (there, absent []node.ID) { return nil, nil }
func (loneMember) JobReplicas(string) []node.ID       { return nil }

func (loneMember) Call(context.Context, string, node.ID, string, []byte, int64) ([]byte, error) {
	return nil, errors.New("there are no others")
}

type fakeLog struct{}

func (fakeLog) Status() consensus.Status { return consensus.Status{Applied: 3, Commit: 7} }

func (fakeLog) Watch(ctx context.Context) <-chan struct{} {
	changed := make(chan struct{})
	context.AfterFunc(ctx, func() { close(changed) })
	return changed
}

type noKeys struct{}

func (noKeys) Accepted(string) (string, bool) { return "", false }
func (noKeys) Known(string) bool              { return true }
func (noKeys) Life(string) uint64             { return 0 }

func newTestStores(t *testing.T) *Stores {
	t.Helper()
	options := &config.Config{}
	options.Paths.StateDir = t.TempDir()
	options.Cluster.JobReplicas = 3
	s, err := New(Config{
		Self: "m1", Options: options, Master: configtest.Load(t, 3008, "cachedir: "+t.TempDir()+"\n"), Member: loneMember{},
		Log: fakeLog{}, Keys: noKeys{}, Stamps: hlc.NewBounded(time.Now), Umask: func() uint32 { return 0o022 },
		LeftToShare: func(string) bool { return true }, JobsShared: true, Waiting: func(string) {},
		Logger: slog.New(slog.DiscardHandler),
	})
	require.NoError(t, err)
	return s
}

// While a node catches up, it reports with what: before the log is there with the log, then with each part.
func TestProgress(t *testing.T) {
	s := newTestStores(t)
	p := s.Progress()
	if len(p) != 1 || p[0].Part != partLog || !p[0].Open() || p[0].Done != 3 || p[0].Total != 7 {
		t.Errorf("before: %+v", p)
	}
	var during []adminapi.SyncPart
	err := s.CatchUp(t.Context(), catchup.Part{
		Name: PartKeys, Await: func(context.Context, func(catchup.Report)) error {
			during = s.Progress()
			return nil
		},
	})
	require.NoError(t, err)
	if len(during) != 5 || during[0].Part != PartKeys || !during[0].Open() {
		t.Errorf("during: %+v", during)
	}
	if p := s.Progress(); len(p) > 0 {
		t.Errorf("after: %+v", p)
	}
}

func TestPlaces(t *testing.T) {
	if n, all := places[jobs.Path], 4; n == 0 || n >= all {
		t.Errorf("one member has %d of %d places for jobs", n, all)
	}
}
