package returns

import (
	"context"
	"errors"
	"fmt"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/spool"
)

const (
	// maxHandOffs bounds the returns that are being handed to another node's journal. Minions send again what is beyond
	// it.
	maxHandOffs = 64
	// maxKeepers is how many nodes are asked to keep one return.
	maxKeepers = 2
)

var errHandOffs = errors.New("returns: too many are being handed to other nodes")

// MasterMayTake says whether a return that a journal has refused may go to a master instead. After an error of the disk
// it must not: a stock master answers the minion even when it could not store the return.
func MasterMayTake(err error) bool {
	return errors.Is(err, spool.ErrTooLarge) || errors.Is(err, spool.ErrBusy)
}

// HandOff has another node keep a return for node to, which is this one where its own journal fails. A nil error means
// that the return is on that node's disk.
func (s *Service) HandOff(ctx context.Context, to node.ID, r Request) (reply []byte, err error) {
	select {
	case s.handOffs <- struct{}{}:
		defer func() { <-s.handOffs }()
	default:
		return nil, errHandOffs
	}
	rec := spool.Record{Received: r.Received, Minion: r.Minion, JID: r.JID, To: string(to), Load: r.Load}
	body, _, err := appendBatch(nil, []spool.Record{rec})
	if err != nil {
		return nil, err
	}
	errs := []error{errNoKeeper}
	tried := 0
	for _, keeper := range s.c.Peers.Keepers(r.JID) {
		if keeper == s.c.Self || keeper == to {
			continue
		}
		if tried++; tried > maxKeepers || ctx.Err() != nil {
			break
		}
		if err := s.c.Peers.Send(ctx, keeper, body); err != nil {
			errs = append(errs, fmt.Errorf("hand a return to %s: %w", keeper, err))
			continue
		}
		s.metrics.count("handed_off")
		return answered, nil
	}
	return nil, errors.Join(errs...)
}

var errNoKeeper = errors.New("returns: no other node keeps it")
