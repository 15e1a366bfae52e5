package saltwire

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"saltclusterd/integration/require"
)

// load is a _minion_event with events of these tags, and fields before and after them.
func eventLoad(tags ...string) []byte {
	out := AppendMapHeader(nil, 4)
	out = AppendRaw(AppendRaw(out, "cmd"), "_minion_event")
	out = AppendNil(AppendRaw(out, "pretag"))
	out = AppendArrayHeader(AppendRaw(out, "events"), len(tags))
	for i, tag := range tags {
		out = AppendMapHeader(out, 2)
		out = AppendInt(AppendRaw(out, "data"), int64(i))
		out = AppendStr(AppendRaw(out, "tag"), tag)
	}
	return AppendStr(AppendRaw(out, "id"), "web1")
}

func TestPickEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tags := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "salt/beacon/x", ""}), 0, 20).Draw(t, "tags")
		plain := eventLoad(tags...)
		mine := func(i int) bool { return i < len(tags) && tags[i] == "a" }
		for name, keep := range map[string]func(int) bool{"mine": mine, "others": func(i int) bool { return !mine(i) }} {
			got, err := PickEvents(plain, keep)
			require.NoError(t, err)
			p, err := PeekLoad(got)
			if err != nil || p.Cmd != "_minion_event" || p.ID != "web1" {
				t.Fatalf("%+v %v", p, err)
			}
			have, err := EventTags(p.Events)
			require.NoError(t, err)
			var want []string
			for i, tag := range tags {
				if keep(i) {
					want = append(want, tag)
				}
			}
			if !slices.Equal(have, want) {
				t.Fatalf("%s of %q: %q", name, tags, have)
			}
		}
		all, err := PickEvents(plain, func(int) bool { return true })
		if err != nil || !bytes.Equal(all, plain) {
			t.Fatalf("all events are another load: %x, not %x (%v)", all, plain, err)
		}
	})
}

func TestEventsThatAreNone(t *testing.T) {
	if tags, err := EventTags([]byte{0x92, 0x81, 0xa3, 't', 'a', 'g', 0x01, 0x80}); err != nil ||
		!slices.Equal(tags, []string{"", ""}) {
		t.Errorf("tags that are no text: %q %v", tags, err)
	}
	for name, events := range map[string][]byte{
		"no list":     {0x80},
		"no maps":     {0x91, 0x01},
		"a tag twice": append(append([]byte{0x91, 0x82}, "\xa3tag\xa1a"...), "\xa3tag\xa1b"...),
		"too many":    append(AppendArrayHeader(nil, MaxEvents+1), bytes.Repeat([]byte{0x80}, MaxEvents+1)...),
	} {
		if tags, err := EventTags(events); err == nil {
			t.Errorf("%s: %d tags", name, len(tags))
		}
	}
	if _, err := PickEvents([]byte{0x80}, func(int) bool { return true }); err == nil {
		t.Error("events were picked from a load without any")
	}
}

func FuzzPickEvents(f *testing.F) {
	f.Add(eventLoad("a", "b"), uint8(1))
	f.Add(eventLoad(), uint8(0))
	f.Add([]byte{0x81, 0xa6, 'e', 'v', 'e', 'n', 't', 's', 0x91, 0xc0}, uint8(1))
	f.Fuzz(func(t *testing.T, plain []byte, mask uint8) {
		got, err := PickEvents(plain, func(i int) bool { return mask&(1<<(i%8)) != 0 })
		if err != nil {
			return
		}
		if len(got) > len(plain)+4 {
			t.Fatalf("%d bytes of %d", len(got), len(plain))
		}
		require.NoError(t, WalkMap(got, func(_, _ []byte) error { return nil }))
	})
}
