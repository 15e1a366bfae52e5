package eventbus

import (
	"errors"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/localmaster"
)

// FuzzTrimEvent: data of events are mostly what minions said.
func FuzzTrimEvent(f *testing.F) {
	data, err := appendEventData(nil, map[string]any{"id": "web1",
		"data": map[string]any{"x": []any{1, "y", nil, true, 1.5}}}, time.Unix(1, 0), 3008)
	require.NoError(f, err)
	f.Add(data, int64(0))
	f.Add(data, int64(pyBytesOverhead+20))
	f.Add([]byte("\x81\xa1a\xc7\x01\x4e\x00"), int64(1))
	f.Add([]byte("\x81\xa1a\xdd\xff\xff\xff\xff"), int64(1))
	f.Fuzz(func(t *testing.T, data []byte, limit int64) {
		out, err := trimEvent(data, limit)
		if err != nil {
			return
		}
		if _, _, err := msgp.ReadMapStrIntfBytes(out, nil); err != nil && string(out) != string(data) {
			t.Fatalf("%x became %x: %v", data, out, err)
		}
	})
}

// FuzzParseVersion reads what a command prints.
func FuzzParseVersion(f *testing.F) {
	f.Add("salt-master 3006.28 (Sulfur)\n")
	f.Add("          Salt: 3008.3")
	f.Add("3099.1")
	f.Fuzz(func(t *testing.T, text string) {
		v, err := localmaster.ParseVersion(text)
		if err != nil {
			if !errors.Is(err, localmaster.ErrVersion) {
				t.Fatal(err)
			}
			return
		}
		if again, err := localmaster.ParseVersion(v.Text); err != nil || again != v {
			t.Fatalf("%+v became %+v, %v", v, again, err)
		}
	})
}
