//go:build integration

package parity

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"saltclusterd/integration/lab/labtest"
)

var update = flag.Bool("update", false, "with SALTCLUSTER_LONG=1: write testdata/bare.json from what the bare masters answer")

// recorded has, by version of Salt and by step, a hash of what a bare master of that version answered.
//
//go:embed testdata/bare.json
var recorded []byte

const recording = "testdata/bare.json"

// sum is a hash of a step's command and of what was seen.
func sum(st Step, o Observation) string {
	h := sha256.New()
	for _, s := range append([]string{st.On, strconv.Itoa(o.Code), o.Stdout, o.Stderr}, st.Argv...) {
		h.Write([]byte(strconv.Quote(s)))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// unrecorded are the steps that a bare master of the version is not known to answer so.
func unrecorded(t *testing.T, version string, seen []Observation) (names []string) {
	t.Helper()
	var known map[string]map[string]string
	labtest.Must(t, json.Unmarshal(recorded, &known))
	for i, st := range script() {
		if o := seen[i]; o.Failed != nil || known[version][st.Name] != sum(st, o) {
			names = append(names, st.Name)
		}
	}
	return names
}

// record keeps what a bare master of the version answered; with SALTCLUSTER_PARITY_STEPS these steps only.
func record(t *testing.T, version string, seen []Observation) {
	t.Helper()
	known := map[string]map[string]string{}
	if raw, err := os.ReadFile(recording); err == nil {
		labtest.Must(t, json.Unmarshal(raw, &known))
	}
	if known[version] == nil {
		known[version] = map[string]string{}
	}
	for i, st := range script() {
		known[version][st.Name] = sum(st, seen[i])
	}
	maps.DeleteFunc(known[version], func(name, _ string) bool {
		return !slices.ContainsFunc(Script(), func(st Step) bool { return st.Name == name })
	})
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	labtest.Must(t, enc.Encode(known))
	labtest.Must(t, os.WriteFile(recording, []byte(b.String()), 0o644))
}
