package sidecar

import (
	"bytes"
	"context"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/sidecar/upstream"
)

var fromShelf = bytes.Repeat([]byte{0xc3}, 100_000)

func shelf() *substitute { return &substitute{takes: []string{"_serve_file"}, says: fromShelf} }

func TestFilesWithoutTheMaster(t *testing.T) {
	down := func(w *world) { w.masterErr = upstream.ErrDown; w.view.Nodes[0].MasterUp = false }
	blind := func(w *world) { w.proxy.cfg.Files.(*substitute).blind = true }
	both := func(w *world) { blind(w); down(w) }
	for _, c := range []withoutMaster{
		{name: "here", asked: 1},
		{name: "relayed by a peer", from: "c", asked: 1},
		{name: "the master is down", change: down, asked: 1},
		{name: "another command", cmd: "_pillar", want: byMaster, master: 1, done: 1},
		{name: "only Python can", err: errOnlyPython, want: byMaster, asked: 1, master: 1, done: 1},
		{name: "only Python can, relayed by a peer", err: errOnlyPython, from: "c", want: byMaster, asked: 1, master: 1,
			done: 1},
		{name: "a load that cannot be read", change: blind, want: byMaster, master: 1, done: 1},
		{name: "a load that cannot be read, the master is down", change: both, want: byMaster, peers: 1},
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
func TestHoldFiles_PendingLocally(t *testing.T) {
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
	check.Equal(t, w.answer(<-first), string(fromShelf), "not answered")
	second := w.ask(t, "_serve_file")
	check.Equal(t, w.proxy.files.countWaiting(), 1, "requests wait")
	release()
	check.Equal(t, w.answer(<-second), string(fromShelf), "not answered after the change")
}

// TestReplyLent_MemoryReuse: large answers reuse memory once it was given back, never before, and small
// ones none.
func TestReplyLent_MemoryReuse(t *testing.T) {
	w := newWorld(t)
	files := &substitute{takes: []string{"_serve_file"}, says: bytes.Repeat([]byte{0xc3}, lentBody)}
	w.proxy.cfg.Files = files
	type sent struct {
		body []byte
		back func([]byte)
	}
	lent, replied := make(chan sent, 1), make(chan []byte, 1)
	ask := func() {
		to := respondTo(replied)
		to.lend = func(b []byte, back func([]byte)) { lent <- sent{b, back} }
		w.proxy.openRequest(&request{body: w.request(t, map[string]any{"cmd": "_serve_file"}), at: time.Now(), to: to})
	}
	ask()
	first := <-lent
	ask()
	second := <-lent
	for _, s := range []sent{first, second} {
		if w.answer(s.body) != string(files.says) {
			t.Fatal("another answer")
		}
	}
	if &first.body[0] == &second.body[0] {
		t.Fatal("the memory of an answer that is not written yet was used again")
	}
	kept := bytes.Clone(second.body)
	first.back(first.body)
	ask()
	if third := <-lent; w.answer(third.body) != string(files.says) || !bytes.Equal(second.body, kept) {
		t.Fatal("an answer under way was changed")
	}
	files.says = []byte{0xc3}
	ask()
	if w.answer(<-replied) != "\xc3" {
		t.Fatal("another answer")
	}
}
