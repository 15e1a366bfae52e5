package membership

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

func TestRecord_End(t *testing.T) {
	dir := t.TempDir()
	if r, err := ReadRemoval(dir); r != nil || err != nil {
		t.Fatalf("before: %+v, %v", r, err)
	}
	r := &Record{ClusterID: "lab", UUID: "11111111-2222", Node: "m1", Generation: 3}
	require.NoError(t, r.Write(dir))
	require.NoError(t, os.MkdirAll(RaftDir(dir), 0o700))
	require.NoError(t, r.End(dir, "it was removed"))
	left, err := ReadRemoval(dir)
	if err != nil || left.Version != removalVersion || left.ClusterID != "lab" || left.UUID != r.UUID ||
		left.Generation != 3 || !strings.HasPrefix(left.Sentence(), "it was removed (cluster lab, 20") {
		t.Errorf("%+v, %v", left, err)
	}
	if r, err := ReadRecord(dir); r != nil || err != nil {
		t.Errorf("the membership is still there: %+v, %v", r, err)
	}
	if _, err := os.Stat(RaftDir(dir)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the log was not put aside: %v", err)
	}
}

func TestReadRemoval_Damaged(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"{", `{"version": 2, "cluster_id": "lab"}`} {
		require.NoError(t, os.WriteFile(RemovalPath(dir), []byte(text), 0o600))
		if _, err := ReadRemoval(dir); err == nil || !strings.Contains(err.Error(), "removed.json") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
