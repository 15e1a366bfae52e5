package daemon

import (
	"context"
	"errors"
	"log/slog"
	"syscall"
	"time"

	"saltclusterd/backoff"
)

// listenRetry is the pause before a port that is taken is tried again.
const listenRetry = 250 * time.Millisecond

// retryListen opens a listener, and waits while its port is taken: a salt-master that has not been moved to loopback
// yet holds it. taken, which may be nil, is called when it has to wait.
func retryListen(ctx context.Context, log *slog.Logger, open func(context.Context) error, taken func()) error {
	for said := false; ; {
		err := open(ctx)
		if !errors.Is(err, syscall.EADDRINUSE) {
			return err
		}
		if !said {
			said = true
			if taken != nil {
				taken()
			}
			log.Error("a port for minions is taken: move the salt-master to loopback (interface: 127.0.0.1) and restart it",
				"err", err)
		}
		if !backoff.Sleep(ctx, listenRetry) {
			return ctx.Err()
		}
	}
}
