package operator

import (
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
