package msgpack

import (
	"testing"

	"saltclusterd/sidecar/saltwire/saltwiretest"
)

func FuzzEntries(f *testing.F) {
	f.Add(AppendShort(AppendShort([]byte{0x81}, "grains"), "x"))
	f.Add([]byte{0xdf, 0xff, 0xff, 0xff, 0xff})
	f.Add([]byte{0x81, 0xc7, 0x01, 0x4e, 0x00, 0xcb, 0, 0, 0, 0, 0, 0, 0, 0})
	stockTraffic(f, func(request []byte) { f.Add(request) })
	f.Fuzz(func(t *testing.T, b []byte) {
		total := 0
		if err := Entries(b, func(key string, value []byte) { total += len(value) }); err == nil && total > len(b) {
			t.Error("values larger than the map")
		}
	})
}

func TestNumbers(t *testing.T) {
	for name, c := range map[string]struct {
		in   []byte
		want float64
		ok   bool
	}{
		"small":    {[]byte{5}, 5, true},
		"negative": {[]byte{0xff}, -1, true},
		"uint32":   {[]byte{0xce, 0, 1, 0, 0}, 65536, true},
		"int16":    {[]byte{0xd1, 0xff, 0xfe}, -2, true},
		"float32":  {[]byte{0xca, 0x3f, 0x80, 0, 0}, 1, true},
		"float64":  {[]byte{0xcb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0}, 1.5, true},
		"text":     {[]byte{0xa1, '1'}, 0, false},
		"nil":      {[]byte{0xc0}, 0, false},
		"cut off":  {[]byte{0xcb, 1}, 0, false},
		"nothing":  {nil, 0, false},
	} {
		if got, ok := Number(c.in); got != c.want || ok != c.ok {
			t.Errorf("%s: %v, %t", name, got, ok)
		}
	}
}

func TestLen(t *testing.T) {
	for name, c := range map[string]struct {
		in   []byte
		want uint64
	}{
		"small":    {[]byte{0x82}, 2},
		"map16":    {[]byte{0xde, 0x27, 0x11}, 10_001},
		"map32":    {[]byte{0xdf, 0xff, 0xff, 0xff, 0xff}, 1<<32 - 1},
		"cut off":  {[]byte{0xdf, 0xff}, 0},
		"a list":   {[]byte{0x92, 1, 2}, 0},
		"nothing":  {nil, 0},
		"no entry": {[]byte{0x80}, 0},
	} {
		if got := Len(c.in); got != c.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}

// stockTraffic adds what stock daemons of three versions sent (sidecar/saltwire/testdata/golden) to a corpus.
func stockTraffic(f *testing.F, add func(request []byte)) {
	f.Helper()
	for _, v := range saltwiretest.Recorded(f, "../../sidecar/saltwire") {
		for _, row := range v.Requests[:min(20, len(v.Requests))] {
			add(row.Request)
		}
		for _, row := range v.Publications {
			add(row.Body)
		}
	}
}
