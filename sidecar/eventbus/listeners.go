package eventbus

import (
	"bytes"
	"context"
	"os"
	"time"

	"saltclusterd/sidecar/localmaster"
)

// kernelSockets lists this network namespace's unix sockets (proc_pid_net(5)); of those that a server has accepted,
// too, the path is what it listens on.
const kernelSockets = "/proc/self/net/unix"

// listenAgain is the pause between looks at who is connected.
const listenAgain = 50 * time.Millisecond

// countActors is how many of a master's own processes connect to its bus and act on what they hear, or come up before
// those that do: the reactor, event_return (salt/utils/event.py:EventReturn) and, from 3007 on,
// salt/master.py:EventMonitor. 0: no process acts.
func countActors(cfg *localmaster.Config) (n int) {
	for _, option := range []string{"reactor", "event_return"} {
		if cfg.Bool(option) {
			n++
		}
	}
	if n > 0 && cfg.Version.Major >= 3007 {
		n++
	}
	return n
}

// AwaitActors waits until those of the master's processes that act on events hear them: they connect while it starts,
// on a busy machine later than its workers answer, and miss what is fired before. It ends with ctx, and at once where
// that cannot be told. The kernel does not name the processes that are connected: a command line that waits for returns
// at that moment is taken for one of them.
func (b *Bus) AwaitActors(ctx context.Context) {
	for b.actors > 0 && b.pub.network == "unix" {
		want := b.actors
		if !b.o.FireOnly {
			want++ // this process also hears it, or is about to
		}
		table, err := os.ReadFile(kernelSockets)
		n, there := countAccepted(table, b.pub.address)
		if err != nil || !there || n >= want {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(listenAgain):
		}
	}
}

// countAccepted counts the connections to a listening socket; false when no process listens there.
func countAccepted(table []byte, path string) (n int, listens bool) {
	const (
		flags, state, name = 3, 5, 7 // columns
		listening          = "00010000"
		connected          = "03"
	)
	for line := range bytes.Lines(table) {
		f := bytes.Fields(line)
		switch {
		case len(f) <= name || string(f[name]) != path:
		case string(f[flags]) == listening:
			listens = true
		case string(f[state]) == connected:
			n++
		}
	}
	return n, listens
}
