package roots

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/check"
)

// powered is an ext4 file system in a file, from which the power can be taken.
type powered struct {
	t          *testing.T
	image, dir string
}

func newPowered(t *testing.T, dir string) *powered {
	p := &powered{t, filepath.Join(t.TempDir(), "image"), dir}
	f, err := os.Create(p.image)
	must(t, err)
	must(t, errors.Join(f.Truncate(64<<20), f.Close()))
	if out, err := p.run("mkfs.ext4", "-q", p.image).CombinedOutput(); err != nil {
		t.Skipf("no file system: %v %s", err, out)
	}
	p.mount()
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	return p
}

func (p *powered) run(name string, arg ...string) *exec.Cmd {
	if _, err := exec.LookPath(name); err != nil {
		name = "/usr/sbin/" + name
	}
	return exec.CommandContext(p.t.Context(), name, arg...)
}

func (p *powered) mount() {
	p.t.Helper()
	if out, err := p.run("mount", "-o", "loop", p.image, p.dir).CombinedOutput(); err != nil {
		p.t.Skipf("no file system: %v %s", err, out)
	}
}

// fail has the file system forget what is not on the disk, and refuse all else.
func (p *powered) fail() error {
	f, err := os.Open(p.dir)
	if err != nil {
		return err
	}
	defer f.Close()
	const shutdown, noLogFlush = 0x8004587d, 2 // EXT4_IOC_SHUTDOWN
	return unix.IoctlSetPointerInt(int(f.Fd()), shutdown, noLogFlush)
}

// unmount waits until the device is free: what it still writes must not come into the next one's way.
func (p *powered) unmount() {
	p.t.Helper()
	must(p.t, unix.Unmount(p.dir, 0))
	for end := time.Now().Add(testTimeout); ; time.Sleep(time.Millisecond) {
		out, err := p.run("losetup", "-j", p.image).Output()
		must(p.t, err)
		if len(out) == 0 {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("still in use: %s", out)
		}
	}
}

// back is the next start of the machine, after which the device has another number.
func (p *powered) back() {
	p.t.Helper()
	p.unmount()
	other := filepath.Join(p.t.TempDir(), "other")
	must(p.t, os.WriteFile(other, make([]byte, 1<<20), 0o600))
	device, err := p.run("losetup", "--find", "--show", other).Output()
	must(p.t, err)
	p.mount()
	must(p.t, p.run("losetup", "-d", strings.TrimSpace(string(device))).Run())
}

// TestPowerFailsDuringASwitch takes the power from a node's disk at steps of a switch for which nobody waited for the
// disk, and after it. The state directory is on that disk, or on one that has all that was written.
func TestPowerFailsDuringASwitch(t *testing.T) {
	const files = 40
	for _, tc := range []struct {
		at    int64
		state bool
	}{{0, true}, {1, true}, {20, true}, {60, true}, {100, true}, {139, true}, {1000, true}, {0, false}, {60, false}, {1000,
		false}} {
		at := tc.at
		t.Run(fmt.Sprintf("step %d, with state %v", at, tc.state), func(t *testing.T) {
			w := newWorld(t)
			a, b := w.start("a"), w.node("b")
			dir := b.dirs[fileBase]
			if tc.state {
				dir = filepath.Dir(b.state)
			}
			disk := newPowered(t, dir)
			must(t, os.MkdirAll(b.dirs[fileBase], 0o755))
			b.open()
			for i := range files {
				a.write(fmt.Sprint("edited/", i), noise(byte(i), 20000))
				a.write(fmt.Sprint("removed/", i), noise(byte(i), 3000))
			}
			w.awaitEqual()
			b.close()
			writeOut(t)
			for i := range files {
				a.write(fmt.Sprint("edited/", i), noise(byte(100+i), 20001))
				a.write(fmt.Sprint("made/", i), noise(byte(i), 10000))
				a.remove(fmt.Sprint("removed/", i))
			}
			_, err := a.store.Sync(t.Context(), SyncOptions{Force: true})
			must(t, err)
			store, err := New(b.cfg)
			must(t, err)
			var steps, failed atomic.Int64
			fail := func() error {
				failed.Store(1)
				check.NoError(t, disk.fail())
				return errors.New("no power")
			}
			store.hooks.step = func() error {
				if steps.Add(1) <= at {
					return nil
				}
				return fail()
			}
			store.cfg.AfterSwitch = func([]SlotName) {
				if failed.Load() == 0 { // all is in its place, and nothing has waited for the disk
					_ = fail()
				}
			}
			b.openStore(store)
			w.await("b has no power", func() bool { return failed.Load() == 1 })
			_ = b.crash()
			disk.back()
			b.open()
			w.awaitEqual()
			if head, _ := (nodeLog{a}).Head(); head.Author != "a" {
				t.Errorf("what a power failure has left was proposed: %+v", head)
			}
			for _, c := range b.store.Conflicts(1000) {
				t.Errorf("put aside: %+v", c)
			}
		})
	}
}

// TestPowerFailsOnAnAuthor takes the power from the node on whose disk something was edited, which nobody has brought
// to the disk there: when its revision has just been decided, and when it is there for a while. The others have it, and
// that node gets it back.
func TestPowerFailsOnAnAuthor(t *testing.T) {
	for _, tc := range []struct {
		files int
		late  bool
	}{{1, false}, {3, true}, {40, false}, {40, true}} {
		t.Run(fmt.Sprintf("%d files, late %v", tc.files, tc.late), func(t *testing.T) {
			w := newWorld(t)
			a, b := w.start("a"), w.node("b")
			disk := newPowered(t, filepath.Dir(b.state))
			must(t, os.Mkdir(b.dirs[fileBase], 0o755))
			b.open()
			for i := range 50 {
				a.write(fmt.Sprint("f", i), "old")
			}
			w.awaitEqual()
			b.close() // it knows its files, as it does after a minute
			b.open()
			w.awaitEqual()
			writeOut(t)
			var failed atomic.Int64
			fail := func() {
				if failed.Swap(1) == 0 {
					must(t, disk.fail())
				}
			}
			w.mu.Lock()
			before := len(w.revs)
			if !tc.late {
				w.decided = func(n *testNode) error {
					if n == b {
						fail()
					}
					return nil
				}
			}
			w.mu.Unlock()
			for i := range tc.files {
				b.write(fmt.Sprint("f", i), "new")
			}
			w.await("a has it", func() bool { return a.has(fmt.Sprint("f", tc.files-1), "new") })
			if tc.late {
				w.awaitEqual()
				b.rested()
				fail()
			}
			_ = b.crash()
			w.mu.Lock()
			w.decided = nil
			made := len(w.revs)
			w.mu.Unlock()
			disk.back()
			store, err := New(b.cfg)
			must(t, err)
			store.boot = "the next one"
			b.openStore(store)
			w.awaitEqual()
			w.mu.Lock()
			defer w.mu.Unlock()
			if made == before || len(w.revs) != made {
				t.Errorf("%d revisions, %d before the power failed: %+v", len(w.revs), made, w.revs[len(w.revs)-1])
			}
			for i := range tc.files {
				if !a.has(fmt.Sprint("f", i), "new") {
					t.Errorf("file %d is old again", i)
				}
			}
		})
	}
}
