package minionview

import (
	"encoding/json"
	"testing"
	"time"

	"saltclusterd/sidecar/presence"
	"saltclusterd/sidecar/wall"
)

// FuzzReport tries the report of another node, and the mark that this node keeps on disk.
func FuzzReport(f *testing.F) {
	f.Add([]byte(`{"now":"2026-01-02T03:04:05Z","groups":[{"from":"10.0.0.1","count":2,"young":1}],` +
		`"named":[{"from":"::1","hash":"00"}],` +
		`"met":[{"id":"web1","key":"0001020304050607","at":"2026-01-02T03:04:05Z","from":"10.0.0.1"}],` +
		`"told":{"term":1,"n":2,"ids":["web1"]}}`))
	f.Add([]byte(`{"groups":[{"from":"","count":1}]}`))
	f.Add([]byte(`{"groups":[{"from":"10.0.0.1","count":-1}]}`))
	f.Add([]byte(`{"at":"2026-01-02T03:04:05Z","told":{"term":1,"n":2,"ids":["web1"]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = parseMark(b)
		var w report
		if json.Unmarshal(b, &w) != nil || w.validate() != nil {
			return
		}
		s := presence.Scene{IDs: []string{"web1"}, Seen: map[string]presence.Sighting{}, Groups: w.Groups, Named: w.Named}
		for _, m := range w.Met {
			s.Seen[m.ID] = presence.Sighting{ID: m.ID, At: m.At, From: m.From}
		}
		if got := presence.Judge(s, time.Now()); len(got) != 1 || got[0].ID != "web1" {
			t.Fatalf("%+v", got)
		}
	})
}

// FuzzParseProofs tries the protocols that this node keeps on disk.
func FuzzParseProofs(f *testing.F) {
	key := wall.HashKey("key")
	f.Add([]byte(`[{"id":"web1","key":"0001020304050607","version":3,"met":"2026-01-02T03:04:05Z","from":"10.0.0.1"}]`))
	f.Add([]byte(`[{"id":"","version":-1},null]`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		proofs, err := parseProofs(b)
		if err != nil {
			return
		}
		w := wall.New(wall.Config{})
		w.Recall(proofs, func(id string) (wall.KeyHash, bool) { return key, id == "web1" })
		for _, p := range w.Proofs() {
			if p.ID != "web1" || p.Key != key {
				t.Fatalf("%s: proof is %+v", b, p)
			}
		}
	})
}
