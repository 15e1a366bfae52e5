package consensus

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"

	"saltclusterd/integration/check"
)

// future is an answer of raft that comes when told to.
type future chan error

func (f future) Error() error { return <-f }

// An entry that raft has forgotten keeps nobody from closing.
func TestAwait(t *testing.T) {
	ended := make(chan struct{})
	f := make(future, 1)
	f <- nil
	check.NoError(t, awaitFuture(f, ended), "answered")
	close(ended)
	forgotten := make(future)
	if err := awaitFuture(forgotten, ended); !errors.Is(err, raft.ErrRaftShutdown) || !mayBeApplied(err) {
		t.Errorf("forgotten: %v", err)
	}
	close(forgotten)
}
