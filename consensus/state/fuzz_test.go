package state

import (
	"bytes"
	"testing"

	"saltclusterd/integration/require"
)

func FuzzDecodeCommand(f *testing.F) {
	for _, c := range allCommands() {
		b, err := EncodeCommand(c)
		require.NoError(f, err)
		f.Add(b)
	}
	f.Add([]byte(`{"v":9,"t":"x","i":true}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := DecodeCommand(b)
		if err != nil {
			return
		}
		for _, s := range []*State{New(), born(t), filled(t)} {
			_ = s.ApplyCommands(c, c)
			check(t, s)
		}
		again, err := EncodeCommand(c)
		require.NoError(t, err)
		if _, err := DecodeCommand(again); err != nil {
			t.Fatalf("%s: %v", again, err)
		}
	})
}

func FuzzDecodeEntry(f *testing.F) {
	b, err := EncodeEntry(Entry{Requests: []Request{{ID: "m1/1", Since: 3, Retry: true, Commands: allCommands()}}})
	require.NoError(f, err)
	f.Add(b)
	f.Add([]byte(`{"v":1,"t":"entry","r":[{"c":[{"v":1,"t":"key.set","d":{"id":1}}]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := DecodeEntry(b)
		if err != nil {
			return
		}
		x, y := filled(t), filled(t)
		x.Apply(3, e)
		y.Apply(3, e)
		check(t, x)
		if dump(t, x.View()) != dump(t, y.View()) {
			t.Fatal("not deterministic")
		}
	})
}

func FuzzReadSnapshot(f *testing.F) {
	for _, s := range []*State{New(), born(f), filled(f)} {
		f.Add([]byte(dump(f, s.View())))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := ReadSnapshot(bytes.NewReader(b))
		if err != nil {
			return
		}
		check(t, s)
		text := dump(t, s.View())
		again, err := ReadSnapshot(bytes.NewReader([]byte(text)))
		if err != nil || dump(t, again.View()) != text {
			t.Fatalf("what was read cannot be written and read again: %v\n%s", err, text)
		}
		s.ApplyCommands(allCommands()...)
		check(t, s)
	})
}
