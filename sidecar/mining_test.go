package sidecar

import (
	"context"
	"errors"
	"sync"
	"testing"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/upstream"
)

// quarry is a Mines that answers what it is told to.
type quarry struct {
	err error

	mu    sync.Mutex
	asked []string
}

func (q *quarry) Takes(cmd string) bool { return cmd == "_mine" || cmd == "_mine_get" }

func (q *quarry) Answer(_ context.Context, cmd, minion string, load []byte, finish func([]byte)) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asked = append(q.asked, cmd+" "+minion)
	if q.err != nil {
		return q.err
	}
	finish([]byte{0xc3})
	return nil
}

func TestMinesWithoutTheMaster(t *testing.T) {
	const byMaster, byMines = "\x81\xa2ok\xc3", "\xc3"
	forward := errors.New("forward")
	for _, c := range []struct {
		name   string
		err    error
		change func(*world)
		from   node.ID
		cmd    string
		want   string
		asked  int
		master int
		peers  int
		done   int
	}{
		{name: "asked here", cmd: "_mine_get", want: byMines, asked: 1},
		{name: "relayed by a peer", from: "c", want: byMines, asked: 1},
		{name: "another node's", change: func(w *world) { alone(w, "c") }, want: byMaster, peers: 1},
		{name: "another command", cmd: "_mine_flush", from: "c", want: byMaster, master: 1, done: 1},
		{name: "only Python can", err: forward, from: "c", want: byMaster, asked: 1, master: 1, done: 1},
		{name: "only Python can, asked here", err: forward, cmd: "_mine_get", want: byMaster, asked: 1, master: 1, done: 1},
		{
			name: "only Python can, which is down", err: forward, cmd: "_mine_get", want: byMaster, asked: 1, peers: 1, master: 1,
			change: func(w *world) { w.masterErr = upstream.ErrDown },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			q := &quarry{err: c.err}
			w.proxy.cfg.Mines = q
			done := 0
			w.proxy.cfg.Done = func(string, string) func(context.Context) { done++; return nil }
			if c.change != nil {
				c.change(w)
			}
			cmd := c.cmd
			if cmd == "" {
				cmd = "_mine"
			}
			if got := w.answer(w.send(t, w.request(t, map[string]any{"cmd": cmd}), c.from)); got != c.want {
				t.Errorf("answered %.40q, want %.40q", got, c.want)
			}
			peers := 0
			for _, n := range w.atPeers {
				peers += n
			}
			if len(q.asked) != c.asked || len(w.atMaster) != c.master || peers != c.peers || done != c.done {
				t.Errorf("asked %q, the master %d times, peers %d times, %d times done", q.asked, len(w.atMaster), peers, done)
			}
		})
	}
}

// alone makes one node the only one whose master answers.
func alone(w *world, id node.ID) {
	for i := range w.view.Nodes {
		w.view.Nodes[i].MasterUp, w.view.Nodes[i].TakesMines = w.view.Nodes[i].ID == id, true
	}
}
