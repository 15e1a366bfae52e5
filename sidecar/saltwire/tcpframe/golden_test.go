package tcpframe

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltwire"
)

// record is what integration/golden/recordtcp.py has recorded with one version of Salt.
type record struct {
	Version, ID            string
	Requests, Publications []stream
}

// stream is one connection.
type stream struct{ Minion, Master []byte }

// golden reads the records of all versions.
func golden(t testing.TB) (records []record) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*.json"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%d records, %v", len(files), err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		var r record
		require.NoError(t, json.Unmarshal(b, &r))
		records = append(records, r)
	}
	return records
}

// TestGolden_Requests reads what stock minions and masters said on the request port, and writes the masters' bytes.
func TestGolden_Requests(t *testing.T) {
	for _, g := range golden(t) {
		requests, signIns := 0, 0
		for _, s := range g.Requests {
			asked, rest, err := decode(s.Minion, 4096)
			if err != nil || rest != 0 {
				t.Fatalf("%s: %d bytes left, %v", g.Version, rest, err)
			}
			answered, rest, err := decode(s.Master, 4096)
			if err != nil || rest != 0 {
				t.Fatalf("%s: %d bytes of answers left, %v", g.Version, rest, err)
			}
			var again []byte
			for _, f := range answered {
				again = append(AppendReplyHead(again, f.Head), f.Body...)
			}
			if !bytes.Equal(again, s.Master) {
				t.Errorf("%s: other bytes than the master's", g.Version)
			}
			for _, f := range asked {
				env, err := saltwire.ParseEnvelope(f.Body)
				check.NoError(t, err, g.Version)
				if requests++; env.Enc == saltwire.EncClear {
					signIns++
				}
				if len(answered) > 0 && !hasHead(answered, f.Head) {
					t.Errorf("%s: no answer has the head %q", g.Version, f.Head)
				}
			}
		}
		if requests < 3 || signIns == 0 {
			t.Errorf("%s: %d requests, %d of them sign-ins", g.Version, requests, signIns)
		}
	}
}

func hasHead(frames []Frame, head []byte) bool {
	for _, f := range frames {
		if bytes.Equal(f.Head, head) {
			return true
		}
	}
	return false
}

// TestGolden_Publications reads what stock minions and masters said on the publish port, and writes the masters' bytes.
func TestGolden_Publications(t *testing.T) {
	for _, g := range golden(t) {
		named, published := 0, 0
		for _, s := range g.Publications {
			said, rest, err := decode(s.Minion, 4096)
			if err != nil || rest != 0 {
				t.Fatalf("%s: %d bytes left, %v", g.Version, rest, err)
			}
			for _, f := range said {
				if load, err := saltwire.ParseSendID(f.Body); err != nil || len(load) == 0 || string(f.Head) != "\x80" {
					t.Errorf("%s: a minion names itself by %q, %v", g.Version, f.Head, err)
				}
				named++
			}
			got, rest, err := decode(s.Master, 4096)
			if err != nil || rest != 0 {
				t.Fatalf("%s: %d bytes of publications left, %v", g.Version, rest, err)
			}
			for _, f := range got {
				published++
				payload, isBytes := saltwire.Bytes(f.Body)
				if isBytes != (g.Version[:4] != "3006") {
					t.Fatalf("%s: a publication is %.20q", g.Version, f.Body)
				}
				if !isBytes {
					payload = f.Body
				}
				if _, err := saltwire.ParsePub(payload); err != nil {
					t.Errorf("%s: %v", g.Version, err)
				}
				if again := AppendPublication(nil, payload); isBytes && !bytes.Contains(s.Master, again) {
					t.Errorf("%s: other bytes than the master's: %.40q", g.Version, again)
				} else if len(again) > PublicationSize(payload) {
					t.Errorf("%d bytes, not at most %d", len(again), PublicationSize(payload))
				}
			}
		}
		if named == 0 || published < 2 {
			t.Errorf("%s: named %d times, %d publications", g.Version, named, published)
		}
	}
}
