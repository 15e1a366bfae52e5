package sidecar

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/upstream"
)

func quarry(err error) *substitute {
	return &substitute{takes: []string{"_mine", "_mine_get"}, says: []byte{0xc3}, err: err}
}

func TestMinesWithoutTheMaster(t *testing.T) {
	for _, c := range []withoutMaster{
		{name: "asked here", cmd: "_mine_get", asked: 1},
		{name: "relayed by a peer", from: "c", asked: 1},
		{name: "another node's", change: func(w *world) { alone(w, "c") }, want: byMaster, peers: 1},
		{name: "another command", cmd: "_mine_flush", from: "c", want: byMaster, master: 1, done: 1},
		{name: "only Python can", err: errOnlyPython, from: "c", want: byMaster, asked: 1, master: 1, done: 1},
		{name: "only Python can, asked here", err: errOnlyPython, cmd: "_mine_get", want: byMaster, asked: 1, master: 1,
			done: 1},
		{
			name: "only Python can, which is down", err: errOnlyPython, cmd: "_mine_get", want: byMaster, asked: 1, peers: 1,
			master: 1,
			change: func(w *world) { w.masterErr = upstream.ErrDown },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := quarry(nil)
			c.check(t, q, func(w *world) { w.proxy.cfg.Mines = q })
		})
	}
}

// A change of a mine that the disk does not take goes to another node, and is not answered where no other one takes it:
// a stock master answers a minion though it could not store what came.
func TestMines_DiskError(t *testing.T) {
	full := fmt.Errorf("write mine.p: %w", syscall.ENOSPC)
	for _, c := range []struct {
		name           string
		err            error
		cmd            string
		from           node.ID
		others         bool // other nodes' masters answer
		peers, masters int
	}{
		{name: "another node takes it", err: full, cmd: "_mine", others: true, peers: 1},
		{name: "no other node", err: full, cmd: "_mine"},
		{name: "a file system that was made read-only", err: syscall.EROFS, cmd: "_mine"},
		{name: "a damaged file system", err: syscall.EUCLEAN, cmd: "_mine", others: true, peers: 1},
		{name: "relayed by a peer", err: full, cmd: "_mine", from: "c", others: true},
		{name: "a question", err: full, cmd: "_mine_get", others: true, masters: 1},
		{name: "only Python can", err: errOnlyPython, cmd: "_mine", others: true, masters: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.proxy.cfg.Mines = quarry(c.err)
			alone(w, "a")
			if c.others { // and this one owns the minion
				for i := range w.view.Nodes {
					w.view.Nodes[i].MasterUp = true
				}
				for _, n := range w.view.Nodes {
					if v := w.view; !w.view.Owns("web1") {
						v.Self = n.ID
						w.view = v
					}
				}
			}
			reply := w.send(t, w.request(t, map[string]any{"cmd": c.cmd}), c.from)
			peers := 0
			for _, n := range w.atPeers {
				peers += n
			}
			if answered := w.opened(reply); answered != (c.peers+c.masters > 0) || peers != c.peers || atMaster(w) != c.masters {
				t.Errorf("answered %t by %d peers and %d masters", answered, peers, atMaster(w))
			}
			if passed := w.passed.Load(); passed > 0 != (c.from != "") {
				t.Errorf("passed back %d times", passed)
			}
		})
	}
}

// A question for mines that nobody waits for any more costs nobody anything; a change is made all the same.
func TestMines_ConnectionGone(t *testing.T) {
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
			q := quarry(c.err)
			w.proxy.cfg.Mines = q
			got, asked := make(chan []byte, 2), 0
			to := respondTo(got)
			to.gone = func() bool { asked++; return asked >= c.goneAt }
			w.proxy.openRequest(&request{body: w.request(t, map[string]any{"cmd": c.cmd}), from: "c", at: time.Now(), to: to})
			reply := <-got
			require.NoError(t, w.proxy.Close())
			if want := []string{"dropped", "\xc3", "\x81\xa2ok\xc3"}[c.want]; reply == nil && c.want != 0 || reply != nil &&
				w.answer(reply) != want {
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
