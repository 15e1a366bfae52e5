package roots

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// TestSpeed prints how long the roots take, beside rsync where there is one; it asserts nothing. ROOTS_SPEED=1 runs it.
func TestSpeed(t *testing.T) {
	if os.Getenv("ROOTS_SPEED") == "" {
		t.Skip("ROOTS_SPEED is not set")
	}
	w := newWorld(t)
	a := w.node("a")
	for i := range 5000 {
		a.write(fmt.Sprintf("d%d/e%d/f%d", i%10, i%100, i), noise(byte(i), 30<<10)+noise(byte(i/256), 10<<10)+fmt.Sprint(i))
	}
	began := time.Now()
	lap := func(what string) {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		t.Logf("%-40s %8.3f s, heap %d MiB", what, time.Since(began).Seconds(), m.HeapSys>>20)
		began = time.Now()
	}
	a.open()
	w.await("a", func() bool { return a.store.Status().Stable(5000) })
	lap("first scan and revision")
	began = time.Now()
	b := w.start("b")
	w.await("b", func() bool { return b.store.Status().Stable(5000) })
	lap("cold sync to b")
	t.Logf("switch: %+v", *b.store.Status().LastSwitch)
	for range 5 {
		began = time.Now()
		if _, err := a.store.Sync(t.Context(), SyncOptions{}); err != nil {
			t.Fatal(err)
		}
		lap("unchanged check")
		began = time.Now()
		if _, err := b.store.Sync(t.Context(), SyncOptions{}); err != nil {
			t.Fatal(err)
		}
		lap("unchanged check on b")
	}
	for i := range 5 {
		began = time.Now()
		a.write("d1/e1/f1", fmt.Sprint("changed", i))
		w.await("b has the change", func() bool { return b.has("d1/e1/f1", fmt.Sprint("changed", i)) })
		lap("one file, by itself")
		began = time.Now()
		a.write("d1/e1/f1", fmt.Sprint("pushed", i))
		if _, err := a.store.Sync(t.Context(), SyncOptions{}); err != nil {
			t.Fatal(err)
		}
		w.await("b has the change", func() bool { return b.has("d1/e1/f1", fmt.Sprint("pushed", i)) })
		lap("one file, pushed")
	}
	rsync(t, a.dirs[fileBase])
}

func rsync(t *testing.T, from string) {
	to := filepath.Join(t.TempDir(), "copy")
	for _, what := range []string{"rsync, cold", "rsync, unchanged", "rsync, unchanged"} {
		began := time.Now()
		out, err := exec.Command("rsync", "-a", from+"/", to+"/").CombinedOutput()
		if err != nil {
			t.Logf("no rsync: %v %.100s", err, out)
			return
		}
		t.Logf("%-40s %8.3f s", what, time.Since(began).Seconds())
	}
}
