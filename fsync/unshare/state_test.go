package unshare

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"saltclusterd/integration/require"
)

func TestState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "migration.json")
	st, err := ReadState(path)
	if err != nil || st.Stage != Shared {
		t.Fatal(st, err)
	}
	want := State{
		Version: 1, Stage: Switching, StandIn: true,
		Plan:   &Plan{Trees: []Tree{{Name: "pki", From: "/a", To: "/b"}}, Options: map[string]any{"pki_dir": "/b"}},
		Copied: Report{Files: 3}, Switched: time.Unix(1_700_000_000, 0).UTC(), Files: []string{"/etc/x"},
	}
	require.NoError(t, want.Save(path))
	if got, err := ReadState(path); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	require.NoError(t, os.WriteFile(path, []byte(`{"v":2,"stage":"teleported"}`), 0o600))
	if _, err := ReadState(path); !errors.Is(err, ErrNewerState) {
		t.Error(err)
	}
}

func FuzzParseState(f *testing.F) {
	for _, text := range []string{
		`{"v":1,"stage":""}`,
		`{"v":1,"stage":"copied","plan":{"trees":[{"name":"pki","from":"/a","to":"/b"}],"options":{"pki_dir":"/b"}},"copied":{"files":1}}`,
		`{"v":1,"stage":"copied"}`, `{"v":2}`, `{"v":1,"stage":"x"}`, `{`, ``,
		`{"v":1,"stage":"switching","plan":{},"switched":"2026-11-21T10:00:00Z","files":["/a"]}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		st, err := ParseState(raw)
		if err == nil && st.Stage != Shared && st.Plan == nil {
			t.Errorf("%+v", st)
		}
	})
}
