package returns

import (
	"context"
	"errors"
	"fmt"

	"saltclusterd/sidecar/jobcache"
)

// Published answers a minion that asks what a job of its own has returned so far (pub_ret), from the job cache on this
// node; what the journals hold follows within a moment, and the minion asks again. Errors: ErrPython, ErrUnknown, the
// disk's.
func (s *Service) Published(ctx context.Context, jid, minion string) ([]byte, error) {
	mode := s.mode.Load()
	if ok, _ := mode.isNative("_return"); !ok {
		return nil, ErrPython
	}
	reply, err := mode.Cache.Published(ctx, jid, minion)
	if _, python := errors.AsType[*jobcache.NeedsPython](err); python {
		return nil, fmt.Errorf("%w: %w", ErrPython, err)
	}
	return reply, err
}
