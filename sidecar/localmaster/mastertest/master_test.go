package mastertest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/sidecar/localmaster/mastertest"
)

func TestStartStopStart(t *testing.T) {
	for _, v := range mastertest.Versions(t) {
		t.Run(v, func(t *testing.T) {
			m := mastertest.Start(t, mastertest.Options{Version: v, Config: "worker_threads: 1"})
			if _, err := os.Stat(filepath.Join(m.PkiDir, "master.pub")); err != nil {
				t.Errorf("the master's files are not where New says: %v", err)
			}
			if out := m.Run("salt-key", "-L"); !strings.Contains(out, "Accepted Keys") {
				t.Errorf("salt-key -L printed %q", out)
			}
			m.Kill()
			if err := mastertest.Ping(m.ReqAddr(), time.Second); err == nil {
				t.Error("a killed master answers")
			}
			m.Start()
		})
	}
}
