package saltvalue

import (
	"errors"
	"runtime"
	"testing"

	"saltclusterd/sidecar/saltwire"
)

// countTo is a map of so many numbers, of which the last one has that value.
func countTo(n int, last []byte) []byte {
	raw := saltwire.AppendMapHeader(nil, n)
	for i := range n {
		raw = saltwire.AppendInt(raw, int64(i))
		if i < n-1 {
			raw = append(raw, 0xc0)
		}
	}
	return append(raw, last...)
}

// TestLoadsOfManyKeys: a load takes a few times its size at most, and not twenty times because it is nothing but keys.
func TestLoadsOfManyKeys(t *testing.T) {
	nested := func(n, levels int) []byte {
		raw := []byte{0xc0}
		for range levels {
			raw = countTo(n, raw)
		}
		return raw
	}
	for _, c := range []struct {
		name   string
		load   []byte
		python bool
	}{
		{"most that are read", nested(maxKeys, 1), false},
		{"one more", nested(maxKeys+1, 1), true},
		{"sixteen MiB of them", nested(2_700_000, 1), true},
		{"many maps with many keys inside each other", nested(maxKeys, 20), true},
		{"more maps with fewer keys", nested(manyKeys, maxDepth), false},
		{"a large map in a large one", nested(manyKeys+1, maxDepth/manyDepth), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := ParseLoad(c.load)
			runtime.ReadMemStats(&after)
			if _, python := errors.AsType[*NeedsPython](err); python != c.python || err != nil && !python {
				t.Errorf("%v, want it left to Python: %v", err, c.python)
			}
			// garbage counts, and a little more is made under the race detector
			if took := after.TotalAlloc - before.TotalAlloc; took > 192<<20 {
				t.Errorf("a load of %d bytes takes %d", len(c.load), took)
			}
		})
	}
}
