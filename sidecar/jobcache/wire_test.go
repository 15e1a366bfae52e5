package jobcache_test

import (
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltwire"
)

// dict is a Python dict in order: key, value, key, value, …
type dict []any

// list is a Python list.
type list []any

// ext is an extension value, as it stands.
type ext []byte

// wire encodes as minions do (use_bin_type=False).
func wire(t testing.TB, v any) []byte {
	t.Helper()
	return appendWire(t, nil, v)
}

func appendWire(t testing.TB, dst []byte, v any) []byte {
	switch v := v.(type) {
	case dict:
		dst = saltwire.AppendMapHeader(dst, len(v)/2)
		for _, e := range v {
			dst = appendWire(t, dst, e)
		}
		return dst
	case list:
		dst = saltwire.AppendArrayHeader(dst, len(v))
		for _, e := range v {
			dst = appendWire(t, dst, e)
		}
		return dst
	case ext:
		return append(dst, v...)
	}
	dst, err := saltwire.AppendAny(dst, v, saltwire.Wire)
	require.NoError(t, err)
	return dst
}

// ret is a minion's return as it comes over the wire; more replaces or adds entries.
func ret(jid, id string, more ...any) dict {
	d := dict{
		"cmd", "_return", "id", id, "success", true, "return", true, "retcode", 0, "jid", jid, "fun", "test.ping",
		"fun_args", list{}, "user", "root", "nonce", "00112233445566778899aabbccddeeff", "ts", 1790000000,
		"tok", []byte{0xff, 0xfe, 1},
	}
	for i := 0; i < len(more); i += 2 {
		d = d.with(more[i], more[i+1])
	}
	return d
}

func (d dict) with(key, value any) dict {
	for i := 0; i < len(d); i += 2 {
		if k, ok := d[i].(string); ok && k == key {
			d[i+1] = value
			return d
		}
	}
	return append(d, key, value)
}

func (d dict) without(key any) dict {
	for i := 0; i < len(d); i += 2 {
		if k, ok := d[i].(string); ok && k == key {
			return append(d[:i:i], d[i+2:]...)
		}
	}
	return d
}
