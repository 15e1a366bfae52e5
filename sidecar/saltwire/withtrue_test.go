package saltwire

import (
	"bytes"
	"testing"

	"saltclusterd/integration/require"
)

func TestWithTrue(t *testing.T) {
	small, err := AppendAny(nil, map[string]any{"cmd": "_pillar"}, Wire)
	require.NoError(t, err)
	fifteen := map[string]any{"cmd": "_pillar", "id": "web1"}
	for i := range 13 {
		fifteen[string(rune('a'+i))] = i
	}
	full, err := AppendAny(nil, fifteen, Wire)
	require.NoError(t, err)
	for _, plain := range [][]byte{small, full, {0x80}} {
		got, err := WithTrue(plain, "clean_cache")
		require.NoError(t, err)
		n, last := 0, []byte(nil)
		err = WalkMap(got, func(key, value []byte) error {
			n++
			last = append(append(last[:0], key...), value...)
			return nil
		})
		before := 0
		_ = WalkMap(plain, func(_, _ []byte) error { before++; return nil })
		if err != nil || n != before+1 || !bytes.Equal(last, []byte("clean_cache\xc3")) {
			t.Errorf("%x: %x, %d fields, %v", plain, got, n, err)
		}
	}
	for _, bad := range [][]byte{nil, {0xc0}, {0x91}, {0xdf, 1}} {
		if _, err := WithTrue(bad, "x"); err == nil {
			t.Errorf("%x was taken", bad)
		}
	}
}

func FuzzWithTrue(f *testing.F) {
	f.Add([]byte("\x81\xa3cmd\xa7_pillar"))
	f.Fuzz(func(t *testing.T, plain []byte) {
		if _, err := PeekLoad(plain); err != nil {
			return
		}
		got, err := WithTrue(plain, "clean_cache")
		require.NoError(t, err)
		if _, err := PeekLoad(got); err != nil {
			t.Errorf("%x becomes %x, which no master reads: %v", plain, got, err)
		}
	})
}
