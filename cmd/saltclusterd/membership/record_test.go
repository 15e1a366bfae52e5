package membership

import (
	"errors"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func TestRecord_WriteRead(t *testing.T) {
	dir := t.TempDir()
	if r, err := ReadRecord(dir); r != nil || err != nil {
		t.Fatalf("without a file: %+v, %v", r, err)
	}
	want := &Record{ClusterID: "c", UUID: "u", Node: "m1", Founder: true, Generation: 3, GossipKeys: [][]byte{{1}, {2}}}
	require.NoError(t, want.Write(dir))
	got, err := ReadRecord(dir)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if info, err := os.Stat(RecordPath(dir)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestReadRecord_Unusable(t *testing.T) {
	for text, want := range map[string]string{"": RecoveryHint, `{"version":`: RecoveryHint,
		`{"version":2}`: "version 2"} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(RecordPath(dir), []byte(text), 0o600))
		if r, err := ReadRecord(dir); r != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v", text, r, err)
		}
	}
}

func TestRecord_Equal(t *testing.T) {
	base := Record{UUID: "u", Generation: 1, GossipKeys: [][]byte{{1}}}
	for name, tc := range map[string]struct {
		edit func(*Record)
		want bool
	}{
		"nothing":     {func(*Record) {}, true},
		"uuid":        {func(r *Record) { r.UUID = "v" }, true}, // does not change during a membership
		"founder":     {func(r *Record) { r.Founder = true }, false},
		"born":        {func(r *Record) { r.Born = true }, false},
		"generation":  {func(r *Record) { r.Generation = 2 }, false},
		"gossip keys": {func(r *Record) { r.GossipKeys = [][]byte{{2}} }, false},
	} {
		other := base
		tc.edit(&other)
		if got := base.Equal(&other); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestWithRecoveryHint(t *testing.T) {
	check.NoError(t, WithRecoveryHint(nil))
	if err := WithRecoveryHint(fs.ErrPermission); strings.Contains(err.Error(), RecoveryHint) {
		t.Error(err)
	}
	if err := WithRecoveryHint(fs.ErrNotExist); !strings.Contains(err.Error(), RecoveryHint) ||
		!errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func FuzzReadRecord(f *testing.F) {
	f.Add([]byte(`{"version":1,"cluster_id":"c","uuid":"u","node":"m1","gossip_keys":["AQ=="]}`))
	f.Add([]byte(`{"version":1,"gossip_keys":[null]}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		require.NoError(t, os.WriteFile(RecordPath(dir), text, 0o600))
		r, err := ReadRecord(dir)
		if err != nil {
			return
		}
		require.NoError(t, r.Write(dir), text, "cannot be written again")
		if again, err := ReadRecord(dir); err != nil || !again.Equal(r) {
			t.Fatalf("%q: %+v, then %+v, %v", text, r, again, err)
		}
	})
}
