package sidecar

import (
	"bytes"
	"context"
	"testing"

	"saltclusterd/sidecar/upstream"
)

var fromShelf = bytes.Repeat([]byte{0xc3}, 100_000)

func shelf() *substitute { return &substitute{takes: []string{"_serve_file"}, says: fromShelf} }

func TestFilesWithoutTheMaster(t *testing.T) {
	down := func(w *world) { w.masterErr = upstream.ErrDown; w.view.Nodes[0].MasterUp = false }
	for _, c := range []withoutMaster{
		{name: "here", asked: 1},
		{name: "relayed by a peer", from: "c", asked: 1},
		{name: "the master is down", change: down, asked: 1},
		{name: "another command", cmd: "_pillar", want: byMaster, master: 1, done: 1},
		{name: "only Python can", err: errOnlyPython, want: byMaster, asked: 1, master: 1, done: 1},
		{name: "only Python can, relayed by a peer", err: errOnlyPython, from: "c", want: byMaster, asked: 1, master: 1, done: 1},
		{name: "only Python can, which is down", err: errOnlyPython, change: down, want: byMaster, asked: 1, peers: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := shelf()
			w := c.check(t, files, func(w *world) { w.proxy.cfg.Files = files })
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
	files := shelf()
	files.busy = make(chan struct{})
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
