package durable_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"saltclusterd/durable"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func TestWrite(t *testing.T) {
	broken := errors.New("broken")
	half := func(w io.Writer) error {
		_, err := io.WriteString(w, "ha")
		return errors.Join(err, broken)
	}
	self := &durable.Owner{UID: os.Getuid(), GID: -1}
	for _, tt := range []struct {
		name   string
		before string // empty: the file is not there
		o      durable.Options
		fill   func(io.Writer) error
		want   string
		err    error
	}{
		{"new", "", durable.Options{Mode: 0o600}, durable.Content([]byte("new")), "new", nil},
		{"in the place of another", "old", durable.Options{Mode: 0o640}, durable.Content([]byte("new")), "new", nil},
		{"empty", "old", durable.Options{Mode: 0o644}, durable.Content(nil), "", nil},
		{"with an owner and a prefix", "old", durable.Options{Mode: 0o444, Owner: self, Prefix: ".other-"},
			durable.Content([]byte("new")), "new", nil},
		{"written by half", "old", durable.Options{Mode: 0o600}, half, "old", broken},
		{"written by half, new", "", durable.Options{Mode: 0o600}, half, "", broken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "file")
			if tt.before != "" {
				require.NoError(t, os.WriteFile(path, []byte(tt.before), 0o600))
			}
			if err := durable.Write(path, tt.o, tt.fill); !errors.Is(err, tt.err) {
				t.Fatalf("%v instead of %v", err, tt.err)
			}
			got, err := os.ReadFile(path)
			if string(got) != tt.want || (err != nil) != (tt.err != nil && tt.before == "") {
				t.Errorf("%q, %v", got, err)
			}
			if fi, err := os.Stat(path); tt.err == nil && (err != nil || fi.Mode().Perm() != tt.o.Mode) {
				t.Errorf("%v, %v", fi, err)
			}
			if names, err := os.ReadDir(dir); err != nil || len(names) > 1 || len(names) == 1 && names[0].Name() != "file" {
				t.Errorf("left behind: %v, %v", names, err)
			}
		})
	}
}

// What stands in the way stays, and what was written beside it does not.
func TestWriteOverDirectory(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "file", "within"), 0o755))
	if err := durable.WriteFile(filepath.Join(dir, "file"), []byte("new"), 0o600); err == nil {
		t.Error("written over a directory")
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("left behind: %v, %v", names, err)
	}
}

func TestWriteNowhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "missing", "file")
	check.ErrorIs(t, durable.WriteFile(path, []byte("new"), 0o600), fs.ErrNotExist)
	check.ErrorIs(t, durable.SyncDir(filepath.Dir(path)), fs.ErrNotExist)
}
