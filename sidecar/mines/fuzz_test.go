package mines_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/mines"
	"saltclusterd/sidecar/saltvalue"
)

// FuzzWrite: whatever a minion sends, and whatever its file holds, what is written is a mine that comes to the same
// when it is sent again, and no larger than both.
func FuzzWrite(f *testing.F) {
	now := []byte("\x82\xa1f\x01\xa1g\xc4\x01\xff")
	for _, d := range []dict{
		load("_mine", "m1", "data", dict{"f", list{1, "ü"}, "h", nil}), load("_mine", "m1", "data", dict{}, "clear", false),
		load("_mine_delete", "m1", "fun", "g"),
		load("_mine_flush", "m1"),
	} {
		f.Add(d[1].(string), wire(f, d), now)
		f.Add(d[1].(string), wire(f, d), []byte(nil))
	}
	f.Add("_mine", wire(f, load("_mine", "m1", "data", dict{"f", 1})), []byte("\x82\xa4data\x01\xa8_expires\x02"))
	store := &shelf{}
	s, err := mines.New(mines.Config{Store: store, Keys: everybody, Settle: time.Minute})
	require.NoError(f, err)
	set, reason := mines.Native(options(f, "", 3007), 3007)
	s.Use(set, reason)
	f.Fuzz(func(t *testing.T, cmd string, load, now []byte) {
		if cmd == "_mine_get" {
			return
		}
		if store.mine = now; len(now) == 0 {
			store.mine = nil
		}
		var reply []byte
		if s.Answer(context.Background(), cmd, "m1", load, func(r []byte) { reply = r }) != nil {
			if !bytes.Equal(store.mine, now) {
				t.Fatalf("%x was written of what is not answered", store.mine)
			}
			return
		}
		if len(reply) != 1 {
			t.Fatalf("answered %x", reply)
		}
		if store.mine == nil {
			return
		}
		if _, ok := saltvalue.ParseFields(store.mine); !ok || len(store.mine) > 3*(len(now)+len(load))+8 {
			t.Fatalf("%x was written", store.mine)
		}
		before := store.mine
		if err := s.Answer(context.Background(), cmd, "m1", load, func([]byte) {}); err != nil ||
			!bytes.Equal(store.mine, before) {
			t.Fatalf("%x became %x when the same came again, %v", before, store.mine, err)
		}
	})
}

// FuzzGet: whatever is asked, and whatever a mine holds, the answer is well-formed and no larger than what was there.
func FuzzGet(f *testing.F) {
	for _, d := range []dict{
		load("_mine_get", "m1", "fun", "f,g", "tgt", "*"),
		load("_mine_get", "m1", "fun", list{"f"}, "tgt", "m1,m2", "tgt_type", "list"),
		load("_mine_get", "m1", "fun", "f", "tgt", "m?", "expr_form", "glob"),
		load("_mine_get", "m1", "fun", "f", "tgt", list{"m2"}, "tgt_type", "list"),
	} {
		f.Add(wire(f, d), wire(f, dict{"f", 1, "g", entry("x", "allow_tgt", "m*")}), false)
		f.Add(wire(f, d), wire(f, dict{"f", entry(dict{"a", 1}, "allow_tgt", "m1,m2", "allow_tgt_type", "list")}), true)
	}
	f.Add(wire(f, load("_mine_get", "m1", "fun", "f", "tgt", "*")), []byte("\x81\xa1f"), false)
	worlds := map[int]*world{}
	for _, major := range []int{3006, 3008} {
		worlds[major] = newWorld(f, options(f, "", major))
	}
	f.Fuzz(func(t *testing.T, load, mine []byte, latest bool) {
		major := 3006
		if latest {
			major = 3008
		}
		w := *worlds[major]
		w.t = t
		w.write(mineFile(major, "m2"), mine)
		reply, err := w.send("_mine_get", "m1", load)
		if err != nil {
			return
		}
		if rest, err := msgp.Skip(reply); err != nil || len(rest) > 0 || !saltvalue.IsMap(reply) {
			t.Fatalf("answered %x: %v", reply, err)
		}
		if len(reply) > 3*(len(load)+1)*(len(mine)+16) {
			t.Fatalf("%d bytes of %d and %d", len(reply), len(load), len(mine))
		}
	})
}
