package sidecar

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

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

// A question for mines that nobody waits for any more costs nobody anything; a change is made all the same.
func TestMinesNobodyWaitsFor(t *testing.T) {
	for _, c := range []struct {
		name   string
		cmd    string
		goneAt int // when it is asked for that many times whether the connection is gone
		err    error
		want   int // 0: dropped, 1: answered by mines, 2: by the master
		asked  int
	}{
		{name: "at first", cmd: "_mine_get", goneAt: 1},
		{name: "while it was answered", cmd: "_mine_get", goneAt: 2, want: 1, asked: 1},
		{name: "while it waited", cmd: "_mine_get", goneAt: 2, err: errors.New("too many"), asked: 1},
		{name: "a change", cmd: "_mine", goneAt: 1, want: 1, asked: 1},
		{name: "a change for the master", cmd: "_mine", goneAt: 1, err: errors.New("only Python"), want: 2, asked: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			q := &quarry{err: c.err}
			w.proxy.cfg.Mines = q
			got, asked := make(chan []byte, 2), 0
			w.proxy.serve(&exchange{
				body: w.request(t, map[string]any{"cmd": c.cmd}), from: "c", at: time.Now(),
				reply: func(b []byte) { got <- b }, drop: func() { got <- nil },
				gone: func() bool { asked++; return asked >= c.goneAt },
			})
			reply := <-got
			if err := w.proxy.Close(); err != nil {
				t.Fatal(err)
			}
			if want := []string{"dropped", "\xc3", "\x81\xa2ok\xc3"}[c.want]; reply == nil && c.want != 0 || reply != nil && w.answer(reply) != want {
				t.Errorf("answered %q", reply)
			}
			if len(q.asked) != c.asked || len(w.atMaster) != max(0, c.want-1) {
				t.Errorf("asked %q, the master %d times", q.asked, len(w.atMaster))
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
