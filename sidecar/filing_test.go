package sidecar

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/upstream"
)

// shelf is a Files that answers what it is told to.
type shelf struct {
	err  error
	busy chan struct{} // answers when it is closed; nil: at once

	mu    sync.Mutex
	asked []string
}

var fromShelf = bytes.Repeat([]byte{0xc3}, 100_000)

func (s *shelf) Takes(cmd string) bool { return cmd == "_serve_file" }

func (s *shelf) Answer(_ context.Context, cmd, minion string, load []byte, finish func([]byte)) error {
	s.mu.Lock()
	s.asked = append(s.asked, cmd+" "+minion)
	s.mu.Unlock()
	if s.busy != nil {
		<-s.busy
	}
	if s.err != nil {
		return s.err
	}
	finish(fromShelf)
	return nil
}

func TestFilesWithoutTheMaster(t *testing.T) {
	const byMaster = "\x81\xa2ok\xc3"
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
	}{
		{name: "here", want: string(fromShelf), asked: 1},
		{name: "relayed by a peer", from: "c", want: string(fromShelf), asked: 1},
		{name: "the master is down", change: func(w *world) { w.masterErr = upstream.ErrDown; w.view.Nodes[0].MasterUp = false }, want: string(fromShelf), asked: 1},
		{name: "another command", cmd: "_pillar", want: byMaster, master: 1},
		{name: "only Python can", err: forward, want: byMaster, asked: 1, master: 1},
		{name: "only Python can, relayed by a peer", err: forward, from: "c", want: byMaster, asked: 1, master: 1},
		{
			name: "only Python can, which is down", err: forward, want: byMaster, asked: 1, peers: 1,
			change: func(w *world) { w.masterErr = upstream.ErrDown; w.view.Nodes[0].MasterUp = false },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			files := &shelf{err: c.err}
			w.proxy.cfg.Files = files
			if c.change != nil {
				c.change(w)
			}
			cmd := c.cmd
			if cmd == "" {
				cmd = "_serve_file"
			}
			if got := w.answer(w.send(t, w.request(t, map[string]any{"cmd": cmd}), c.from)); got != c.want {
				t.Errorf("answered %.40q, want %.40q", got, c.want)
			}
			peers := 0
			for _, n := range w.atPeers {
				peers += n
			}
			if len(files.asked) != c.asked || len(w.atMaster) != c.master || peers != c.peers {
				t.Errorf("asked %q, the master %d times, peers %d times", files.asked, len(w.atMaster), peers)
			}
			release, err := w.proxy.HoldFiles(t.Context()) // nothing is said to be under way
			if err != nil || w.proxy.files.inside != 0 {
				t.Errorf("%v, %d under way", err, w.proxy.files.inside)
			}
			release()
		})
	}
}

// A change of the roots waits for answers that are being made here, and later requests wait for the change.
func TestFilesAreHeldWhileTheRootsChange(t *testing.T) {
	w := newWorld(t)
	files := &shelf{busy: make(chan struct{})}
	w.proxy.cfg.Files = files
	first := w.ask(t, "_serve_file")
	held := make(chan func())
	go func() {
		release, err := w.proxy.HoldFiles(context.Background())
		if err != nil {
			release = func() {}
		}
		held <- release
	}()
	select {
	case <-held:
		t.Fatal("the change began under a request")
	case <-first:
		t.Fatal("answered too early")
	default:
	}
	close(files.busy)
	release := <-held
	if w.answer(<-first) != string(fromShelf) {
		t.Error("not answered")
	}
	second := w.ask(t, "_serve_file")
	if n := w.proxy.files.size(); n != 1 {
		t.Errorf("%d requests wait", n)
	}
	release()
	if w.answer(<-second) != string(fromShelf) {
		t.Error("not answered after the change")
	}
}
