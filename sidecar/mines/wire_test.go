package mines_test

import (
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltwire"
)

// dict is a Python dict in order: key, value, key, value, …
type dict []any

// list is a Python list.
type list []any

// ext is a value as it stands.
type ext string

// wire encodes as minions do (use_bin_type=False).
func wire(t testing.TB, v any) []byte {
	t.Helper()
	return appendAny(t, nil, v, saltwire.Wire)
}

func appendAny(t testing.TB, dst []byte, v any, how saltwire.Style) []byte {
	t.Helper()
	switch v := v.(type) {
	case dict:
		dst = saltwire.AppendMapHeader(dst, len(v)/2)
		for _, e := range v {
			dst = appendAny(t, dst, e, how)
		}
		return dst
	case list:
		dst = saltwire.AppendArrayHeader(dst, len(v))
		for _, e := range v {
			dst = appendAny(t, dst, e, how)
		}
		return dst
	case ext:
		return append(dst, v...)
	}
	dst, err := saltwire.AppendAny(dst, v, how)
	require.NoError(t, err)
	return dst
}

// load is what a minion sends.
func load(cmd, id string, more ...any) dict {
	return append(dict{"cmd", cmd, "id", id, "nonce", "00112233445566778899aabbccddeeff", "ts", 1790000000, "tok",
		[]byte{0xff, 0xfe, 1}}, more...)
}

func (d dict) without(key any) dict {
	for i := 0; i < len(d); i += 2 {
		if d[i] == key {
			return append(d[:i:i], d[i+2:]...)
		}
	}
	return d
}

func (d dict) with(key, value any) dict { return append(d.without(key), key, value) }
