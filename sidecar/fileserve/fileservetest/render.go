package fileservetest

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"testing"

	"saltclusterd/sidecar/saltwire"
)

// Render prints an answer so that equal ones print equally: maps by key, chunks unpacked, the corpus's place left out.
// of says which of the figures of a stat count.
func (c *Corpus) Render(t testing.TB, cmd string, reply []byte, of []int) string {
	t.Helper()
	v, err := Decode(reply)
	if err != nil {
		t.Fatalf("%s: %v in %q", cmd, err, reply)
	}
	switch v := v.(type) {
	case map[string]any:
		if at, ok := v["path"].(string); ok {
			v["path"] = strings.ReplaceAll(at, c.Dir, "@") // while it is readable
		}
		if st, ok := v["stat"].([]any); ok {
			v["stat"] = pick(st, of)
		}
		if data, ok := v["data"].(string); ok && v["gzip"] != nil {
			v["data"] = unzip(t, data)
		}
	case []any:
		if len(v) == 2 && cmd == "_file_hash_and_stat" {
			if st, ok := v[1].([]any); ok {
				v[1] = pick(st, of)
			}
		}
		if cmd == "_file_envs" {
			slices.SortFunc(v, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		}
	}
	return strings.ReplaceAll(Show(v), c.Dir, "@")
}

// The figures of a stat that are compared.
var (
	AllFigures    = []int{0, 1, 2, 3, 4, 5, 6, 8, 9} // all but the time of access
	StableFigures = []int{0, 3, 6, 8}                // those that are the same everywhere
)

func pick(st []any, of []int) []any {
	out := make([]any, 0, len(of))
	for _, i := range of {
		out = append(out, st[i])
	}
	return out
}

func unzip(t testing.TB, data string) string {
	t.Helper()
	z, err := gzip.NewReader(strings.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Show prints a decoded value.
func Show(v any) string {
	var b strings.Builder
	switch v := v.(type) {
	case string:
		if len(v) > 120 {
			return fmt.Sprintf("%d bytes %x", len(v), sha256.Sum256([]byte(v)))
		}
		return fmt.Sprintf("%q", v)
	case []any:
		for i, e := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(Show(e))
		}
		return "[" + b.String() + "]"
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for i, k := range keys {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%q: %s", k, Show(v[k]))
		}
		return "{" + b.String() + "}"
	}
	return fmt.Sprint(v)
}

// Decode reads msgpack into string, int64, uint64, bool, nil, []any and map[string]any.
func Decode(raw []byte) (any, error) {
	if b, ok := saltwire.Bytes(raw); ok {
		return string(b), nil
	}
	if i, ok := saltwire.Int(raw); ok {
		return i, nil
	}
	if u, ok := saltwire.Uint(raw); ok {
		return u, nil
	}
	if b, ok := saltwire.Bool(raw); ok {
		return b, nil
	}
	if bytes.Equal(raw, []byte{0xc0}) {
		return nil, nil
	}
	m := map[string]any{}
	if err := saltwire.WalkMap(raw, func(k, v []byte) (err error) {
		m[string(k)], err = Decode(v)
		return err
	}); err == nil {
		return m, nil
	}
	list := []any{}
	err := saltwire.WalkArray(raw, func(v []byte) error {
		e, err := Decode(v)
		list = append(list, e)
		return err
	})
	return list, err
}
