package operator

import (
	"slices"
	"strings"
	"testing"

	"saltclusterd/sidecar/health"
)

func TestJudgeRoom(t *testing.T) {
	for _, tc := range []struct {
		r     room
		level health.Level
		says  string
	}{
		{room{bytes: 1 << 40, inodes: true}, health.OK, ""},
		{room{bytes: 100 << 20, inodes: true}, health.Warn, "nearly full, 100 MiB are left"},
		{room{bytes: 4096, inodes: true}, health.Fail, "the disk of /x is full"},
		{room{bytes: 1 << 40}, health.Fail, "out of inodes"},
	} {
		got := judgeRoom("/x", "it forgets", tc.r)
		hinted := tc.says == "" || strings.Contains(got.Hint, "/x")
		if got.Level != tc.level || !strings.Contains(got.Reason, tc.says) || !hinted {
			t.Errorf("%+v: %+v", tc.r, got)
		}
	}
	if r, err := roomAt(t.TempDir()); err != nil || r.bytes == 0 || !r.inodes {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := roomAt("/no/such/directory"); err == nil {
		t.Error("there is room where nothing is")
	}
}

// A directory that is full is reported, although another one is nearly full and listed first.
func TestCheckRoom(t *testing.T) {
	const little, full, much = 100 << 20, 4096, 1 << 40
	for name, tc := range map[string]struct {
		state, cache uint64
		level        health.Level
		says         string
	}{
		"room":                          {much, much, health.OK, ""},
		"state_dir full":                {full, much, health.Fail, "/state is full"},
		"cachedir full":                 {much, full, health.Warn, "/cache is full"},
		"both full":                     {full, full, health.Fail, "/state is full"},
		"state_dir nearly, cachedir is": {little, full, health.Warn, "/cache is full"},
		"both nearly full":              {little, little, health.Warn, "is nearly full"},
	} {
		rooms := map[string]room{"/state": {tc.state, true}, "/cache": {tc.cache, true}}
		dirs := []Directory{{Path: "/state"}, {Path: "/cache", WarnOnly: true}}
		for range 2 {
			got := checkRoom(func(dir string) (room, error) { return rooms[dir], nil }, dirs)
			if got.Level != tc.level || !strings.Contains(got.Reason, tc.says) {
				t.Errorf("%s, %s first: %+v", name, dirs[0].Path, got)
			}
			slices.Reverse(dirs)
		}
	}
}
