package saltwire

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

// reason returns why err was refused, "" for nil.
func reason(t testing.TB, err error) string {
	t.Helper()
	if err == nil {
		return ""
	}
	var r *Refused
	if !errors.As(err, &r) {
		t.Fatalf("not a *Refused: %v", err)
	}
	return r.Reason
}

func mp(t testing.TB, v any) []byte {
	t.Helper()
	b, err := AppendAny(nil, v, Wire)
	require.NoError(t, err)
	return b
}

func TestIntegers(t *testing.T) {
	for _, i := range []int64{0, 1, 127, 128, 255, 256, 65535, 65536, math.MaxUint32, math.MaxUint32 + 1, math.MaxInt64,
		-1, -32, -33, -128, -129, -32768, -32769, math.MinInt32, math.MinInt32 - 1, math.MinInt64} {
		b := AppendInt(nil, i)
		if got, ok := Int(b); !ok || got != i {
			t.Errorf("%d: % x reads as %d, %v", i, b, got, ok)
		}
		if u, ok := Uint(b); ok != (i >= 0) || ok && u != uint64(i) {
			t.Errorf("%d: Uint = %d, %v", i, u, ok)
		}
	}
	// Not in the shortest form: other encoders may write so.
	for _, b := range [][]byte{{0xcc, 5}, {0xcd, 0, 5}, {0xce, 0, 0, 0, 5}, {0xcf, 0, 0, 0, 0, 0, 0, 0, 5},
		{0xd0, 5}, {0xd1, 0, 5}, {0xd2, 0, 0, 0, 5}, {0xd3, 0, 0, 0, 0, 0, 0, 0, 5}} {
		if got, ok := Int(b); !ok || got != 5 {
			t.Errorf("% x reads as %d, %v", b, got, ok)
		}
	}
	if _, ok := Int(AppendUint(nil, math.MaxUint64)); ok {
		t.Error("2^64-1 fits int64")
	}
	for _, b := range [][]byte{nil, {0xcc}, {5, 5}, {0xc0}, {0xa1, 'x'}, {0xca, 0, 0, 0, 0}} {
		if _, ok := Int(b); ok {
			t.Errorf("% x is an integer", b)
		}
	}
}

func TestStrings(t *testing.T) {
	for _, n := range []int{0, 1, 31, 32, 255, 256, 65535, 65536} {
		s := strings.Repeat("s", n)
		raw := AppendRaw(nil, s)
		if raw[0] == 0xd9 || raw[0] >= 0xc4 && raw[0] <= 0xc6 {
			t.Errorf("%d bytes on the wire start with %#x", n, raw[0])
		}
		for _, b := range [][]byte{raw, AppendStr(nil, s), AppendBin(nil, []byte(s))} {
			if got, ok := Bytes(b); !ok || string(got) != s {
				t.Errorf("%d bytes: %v", n, ok)
			}
			if _, ok := Bytes(append(b, 0)); ok {
				t.Errorf("%d bytes: one more is taken too", n)
			}
		}
	}
}

func TestAppendAny(t *testing.T) {
	v := map[string]any{"b": []any{nil, true, false, 1.5, uint64(7), int64(-1)}, "a": []string{"x"}, "c": map[string]any{},
		"d": []byte{0xff}}
	want := "\x84\xa1a\x91\xa1x\xa1b\x96\xc0\xc3\xc2\xcb\x3f\xf8\x00\x00\x00\x00\x00\x00\x07\xff\xa1c\x80\xa1d\xa1\xff"
	if got := mp(t, v); string(got) != want {
		t.Errorf("%q", got)
	}
	big := make([]any, 70000)
	check.NoError(t, WalkArray(mp(t, big), func([]byte) error { return nil }))
	if got, err := AppendAny([]byte("kept"), []any{1, struct{}{}}, Wire); err == nil || string(got) != "kept" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestSkipRefuses(t *testing.T) {
	nest := func(n int) []byte { return append(bytes.Repeat([]byte{0x91}, n), 0xc0) }
	wrap := func(value []byte) []byte { return append([]byte{0x81, 0xa1, 'k'}, value...) }
	for _, c := range []struct {
		name, want string
		value      []byte
		rules      rules
	}{
		{"reserved byte", ReasonFormat, []byte{0xc1}, sealedRules},
		{"empty", ReasonTruncated, nil, sealedRules},
		{"string beyond the end", ReasonTruncated, []byte{0xa5, 'x'}, sealedRules},
		{"2^32-1 bytes announced", ReasonTruncated, []byte{0xdb, 0xff, 0xff, 0xff, 0xff}, sealedRules},
		{"2^32-1 elements announced", ReasonTruncated, []byte{0xdd, 0xff, 0xff, 0xff, 0xff, 0xc0}, sealedRules},
		{"2^32-1 pairs announced", ReasonTruncated, []byte{0xdf, 0xff, 0xff, 0xff, 0xff, 0xc0}, sealedRules},
		{"half a length", ReasonTruncated, []byte{0xda, 0}, sealedRules},
		{"extension in the open", ReasonFormat, []byte{0xd4, 78, 0}, openRules},
		{"extension sealed", "", []byte{0xd4, 78, 0}, sealedRules},
		{"ext8", "", []byte{0xc7, 2, 78, 0, 0}, sealedRules},
		{"a constant", "", []byte{0xd4, 79, 0}, sealedRules},
		{"text as an extension", ReasonFormat, []byte{0xc7, 2, 1, 's', 'a'}, sealedRules},
		{"text as a fixed extension", ReasonFormat, []byte{0x81, 0xa3, 't', 'a', 'g', 0xd6, 5, 's', 'a', 'l', 't'},
			sealedRules},
		{"a name as an extension", ReasonFormat, []byte{0x81, 0xd5, 0, 'i', 'd', 0xc0}, sealedRules},
		{"a timestamp of msgpack's", ReasonFormat, []byte{0xd6, 0xff, 0, 0, 0, 0}, sealedRules},
		{"no type", ReasonFormat, []byte{0xc7, 0, 1}, sealedRules},
		{"63 deep in the open", "", nest(63), openRules},
		{"64 deep in the open", ReasonDepth, nest(64), openRules},
		{"899 deep sealed", "", nest(899), sealedRules},
		{"900 deep sealed", ReasonDepth, nest(900), sealedRules},
		{"a million deep", ReasonDepth, nest(1e6), sealedRules},
		{"map as key", ReasonKeyType, []byte{0x81, 0x80, 0xc0}, sealedRules},
		{"list as key", ReasonKeyType, []byte{0x81, 0x90, 0xc0}, sealedRules},
		{"int as nested key", "", []byte{0x81, 0x01, 0xc0}, sealedRules},
		{"trailing", ReasonTrailing, []byte{0xc0, 0xc0}, sealedRules},
	} {
		it, err := openMap(wrap(c.value), c.rules)
		for ok := true; ok && err == nil; {
			_, _, ok, err = it.nextPair()
		}
		if got := reason(t, err); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
