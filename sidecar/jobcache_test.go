package sidecar

import (
	"errors"
	"testing"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/sidecar/returns"
	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/upstream"
)

func TestQuestionsForAPublishedJob(t *testing.T) {
	const (
		jid     = "20261121000000000001"
		here    = "\x81\xa2m1\x81\xa3ret\xc3"
		byPeer  = "\x81\xa2ok\xc3" // by a peer, or the master
		nothing = "\x80"
		no      = "\xa0" // what stock masters that do not know of it say
	)
	unknown := journals{publishedErr: returns.ErrUnknown}
	publisher := func(id node.ID) func(*world) {
		return func(w *world) {
			jobs := router.NewJobs(1)
			jobs.Record(jid, id, 0)
			w.view.Jobs = jobs
		}
	}
	for _, c := range []struct {
		name   string
		j      journals
		change []func(*world)
		from   node.ID
		want   string
		peers  int // questions to other nodes
		master int
	}{
		{name: "published here", j: journals{published: here}, change: []func(*world){publisher("a")}, want: here},
		{name: "relayed", j: journals{published: here}, from: "c", want: here},
		{name: "relayed, not known", j: unknown, from: "c", want: no},
		{name: "relayed, only Python can tell, and it is down", j: journals{publishedErr: returns.ErrPython}, from: "c",
			change: []func(*world){masterFails}, want: "", master: 1},
		{name: "published elsewhere", j: unknown, change: []func(*world){publisher("b")}, want: byPeer, peers: 1},
		{name: "publisher not known, the job is here", j: journals{published: here}, want: here},
		{name: "publisher not known, nor the job", j: unknown, want: byPeer, peers: 1},
		{name: "nobody knows", j: unknown, change: []func(*world){peersSay(no, "b", "c")}, want: no, peers: 2},
		{name: "somebody knows", j: unknown, change: []func(*world){peersSay(no, "b")}, want: byPeer, peers: -1},
		{name: "nobody knows, one does not answer", j: unknown, change: []func(*world){peersSay(no, "b"), peersFail("c")},
			want: nothing, peers: 2},
		{name: "nobody answers", j: unknown, change: []func(*world){peersFail("b", "c")}, want: nothing, peers: 2},
		{name: "the publisher is gone, the job is here", j: journals{published: here},
			change: []func(*world){publisher("b"), gone}, want: here},
		{name: "the publisher is gone, nobody has the job", j: unknown,
			change: []func(*world){publisher("b"), gone, peersSay(no, "c")}, want: nothing, peers: 1},
		{name: "the publisher does not answer, the job is here", j: journals{published: here},
			change: []func(*world){publisher("b"), peersFail("b"), peersSay(no, "c")}, want: here, peers: -1},
		{name: "the publisher has forgotten it", j: unknown, change: []func(*world){publisher("b"), peersSay(no, "b", "c")},
			want: no, peers: 2},
		{name: "the publisher's master raised outside", j: journals{published: here},
			change: []func(*world){publisher("b"), peersSay(no, "c"), func(w *world) {
				w.bare["b"] = "Some exception handling minion payload"
			}}, want: here, peers: -1},
		{name: "only Python can tell", j: journals{publishedErr: returns.ErrPython}, change: []func(*world){publisher("a")},
			want: byPeer, master: 1},
		{name: "disk error, the master knows nothing", j: journals{publishedErr: errors.New("io")},
			change: []func(*world){func(w *world) { w.says = no }}, want: byPeer, peers: 1, master: 1},
		{name: "disk error, the master is down", j: journals{publishedErr: errors.New("io")},
			change: []func(*world){masterFails}, want: byPeer, peers: 1, master: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.proxy.cfg.Returns = &c.j
			for _, change := range c.change {
				change(w)
			}
			reply := w.send(t, w.request(t, map[string]any{"cmd": "pub_ret", "jid": jid}), c.from)
			check.Equal(t, w.answer(reply), c.want, "answered")
			asked := w.atPeers["a"] + w.atPeers["b"] + w.atPeers["c"]
			if c.peers >= 0 && asked != c.peers || w.atPeers["a"] > 0 {
				t.Errorf("asked %v", w.atPeers)
			}
			check.Equal(t, len(w.atMaster), c.master, "the master")
		})
	}
}

func masterFails(w *world) { w.masterErr = upstream.ErrDown }

func gone(w *world) { w.view.Nodes[1].Alive = false }

func peersSay(what string, ids ...node.ID) func(*world) {
	return func(w *world) {
		for _, id := range ids {
			w.peerSays[id] = what
		}
	}
}

func peersFail(ids ...node.ID) func(*world) {
	return func(w *world) {
		for _, id := range ids {
			w.peerErr[id] = errors.New("cut")
		}
	}
}

// Without anything that answers in its place, the publisher's master is asked; what another one says is not an answer.
func TestQuestionsWithoutReturns(t *testing.T) {
	w := newWorld(t)
	w.says = "\xa0"
	if got := w.answer(w.send(t, w.request(t, map[string]any{"cmd": "pub_ret", "jid": "20261121000000000001"}),
		"")); got != "\x81\xa2ok\xc3" {
		t.Errorf("answered %q", got)
	}
	w.masterKey = new(newKey(t)) // the same from a master that holds another key of the minion's
	if got := w.answer(w.send(t, w.request(t, map[string]any{"cmd": "pub_ret", "jid": "20261121000000000001"}),
		"")); got != "\x81\xa2ok\xc3" {
		t.Errorf("sealed anew: answered %q", got)
	}
	if got := w.answer(w.send(t, w.request(t, map[string]any{"cmd": "_pillar"}), "")); got != "\xa0" {
		t.Errorf("another command: answered %q", got)
	}
}
