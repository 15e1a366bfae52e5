package consensus

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
)

// future is an answer of raft that comes when told to.
type future chan error

func (f future) Error() error { return <-f }

// An entry that raft has forgotten keeps nobody from closing.
func TestAwait(t *testing.T) {
	ended := make(chan struct{})
	f := make(future, 1)
	f <- nil
	if err := awaitFuture(f, ended); err != nil {
		t.Errorf("answered: %v", err)
	}
	close(ended)
	forgotten := make(future)
	if err := awaitFuture(forgotten, ended); !errors.Is(err, raft.ErrRaftShutdown) || !mayBeApplied(err) {
		t.Errorf("forgotten: %v", err)
	}
	close(forgotten)
}
