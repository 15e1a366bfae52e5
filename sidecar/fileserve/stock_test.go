package fileserve_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/fileserve"
	"saltclusterd/sidecar/fileserve/fileservetest"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/localmaster/mastertest"
)

var record = flag.Bool("record", false, "write the answers of stock Salt to testdata/stock.json")

const recording = "testdata/stock.json"

// serve is a server for a configuration, with a cachedir of its own.
func serve(t testing.TB, c *fileservetest.Corpus, config string, major int) *fileserve.Server {
	t.Helper()
	dir := t.TempDir()
	conf := filepath.Join(dir, "master")
	require.NoError(t, os.WriteFile(conf, []byte("root_dir: "+dir+"\n"+c.Fill(config)), 0o600))
	master, err := localmaster.LoadConfig(conf, localmaster.Version{Major: major, Text: "test"})
	require.NoError(t, err)
	set, reason := fileserve.Native(master, major)
	if set == nil {
		t.Fatalf("not native: %s", reason)
	}
	s := fileserve.New(fileserve.Config{Logger: slog.New(slog.DiscardHandler)})
	s.Use(set, "")
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// answer is a reply; ok is false when only a master can answer.
func answer(t testing.TB, s *fileserve.Server, cmd string, load []byte) (reply []byte, ok bool) {
	t.Helper()
	calls := 0
	err := s.Answer(context.Background(), cmd, "web1", load, func(r []byte) {
		reply = slices.Clone(r)
		calls++
	})
	if err != nil && (!errors.Is(err, fileserve.ErrForward) || calls != 0) || err == nil && calls != 1 {
		t.Fatalf("%s: %v after %d answers", cmd, err, calls)
	}
	return reply, err == nil
}

// TestSameAsStock asks the file server of real masters and ours the same and compares what they answer.
func TestSameAsStock(t *testing.T) {
	var mu sync.Mutex
	recorded := map[string]map[string]string{}
	t.Cleanup(func() { // when all below have ended
		if *record && !t.Failed() {
			writeRecording(t, recorded)
		}
	})
	c := corpus{fileservetest.New(t)}
	for _, v := range mastertest.Versions(t) {
		for _, s := range fileservetest.Settings {
			t.Run(v+"/"+s.Name, func(t *testing.T) {
				t.Parallel() // they wait for disks and interpreters more than they compute
				texts := c.compare(t, v, s)
				mu.Lock()
				defer mu.Unlock()
				if before := recorded[s.Name]; before != nil && !maps.Equal(before, texts) {
					t.Errorf("this version answers other than the one before")
				}
				recorded[s.Name] = texts
			})
		}
	}
}

func writeRecording(t *testing.T, recorded map[string]map[string]string) {
	text, err := json.MarshalIndent(recorded, "", " ")
	if err == nil {
		err = os.WriteFile(recording, append(text, '\n'), 0o644)
	}
	require.NoError(t, err)
}

type corpus struct{ *fileservetest.Corpus }

// compare returns stock's answers to what is answered here, as they are recorded.
func (c corpus) compare(t *testing.T, version string, s fileservetest.Setting) map[string]string {
	m := mastertest.New(t, mastertest.Options{Version: version, Config: c.Fill(s.Config)})
	ver, err := localmaster.ParseVersion(version)
	require.NoError(t, err)
	ordinary := s.Comparable(fileservetest.Asks())
	todo := append(ordinary, s.Comparable(fileservetest.Variants(uint64(ver.Major), 1500))...)
	theirs := c.runStock(t, m, todo)
	ours := serve(t, c.Corpus, s.Config, ver.Major)
	texts, forwarded := map[string]string{}, 0
	for i, one := range todo {
		reply, ok := answer(t, ours, one.Cmd, one.Load)
		if !ok {
			forwarded++
			continue
		}
		if theirs[i] == nil {
			t.Errorf("%s: a stock worker does not answer, we do: %q", one.Name, reply)
			continue
		}
		got, want := c.Render(t, one.Cmd, reply, fileservetest.AllFigures), c.Render(t, one.Cmd, theirs[i],
			fileservetest.AllFigures)
		if got != want {
			t.Errorf("%s:\nours  %s\nstock %s", one.Name, got, want)
		}
		if i < len(ordinary) {
			texts[one.Name] = c.Render(t, one.Cmd, theirs[i], fileservetest.StableFigures)
		}
	}
	t.Logf("%d answered here, %d forwarded", len(todo)-forwarded, forwarded)
	return texts
}

func (c corpus) runStock(t *testing.T, m *mastertest.Master, todo []fileservetest.Ask) [][]byte {
	t.Helper()
	type stockCase struct {
		Cmd  string `json:"cmd"`
		Load []byte `json:"load"`
	}
	cases := make([]stockCase, len(todo))
	for i, one := range todo {
		cases[i] = stockCase{one.Cmd, one.Load}
	}
	var results [][]byte
	m.Code("testdata/stock.py", mastertest.Umask, cases, &results)
	if len(results) != len(todo) {
		t.Fatalf("results of %s: %d of %d", m.Version, len(results), len(todo))
	}
	return results
}

// TestAsRecorded is TestSameAsStock without a Salt.
func TestAsRecorded(t *testing.T) {
	text, err := os.ReadFile(recording)
	require.NoError(t, err)
	var recorded map[string]map[string]string
	require.NoError(t, json.Unmarshal(text, &recorded))
	c := corpus{fileservetest.New(t)}
	for _, s := range fileservetest.Settings {
		t.Run(s.Name, func(t *testing.T) {
			ours, seen := serve(t, c.Corpus, s.Config, 3007), map[string]bool{}
			for _, one := range s.Comparable(fileservetest.Asks()) {
				reply, ok := answer(t, ours, one.Cmd, one.Load)
				if !ok {
					continue
				}
				seen[one.Name] = true
				want, known := recorded[s.Name][one.Name]
				if got := c.Render(t, one.Cmd, reply, fileservetest.StableFigures); !known || got != want {
					t.Errorf("%s:\nours  %s\nstock %s", one.Name, got, want)
				}
			}
			if n := len(seen); n != len(recorded[s.Name]) || n < 100 {
				t.Errorf("%d answered here, %d recorded", n, len(recorded[s.Name]))
			}
		})
	}
}
