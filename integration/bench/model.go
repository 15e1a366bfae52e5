package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
	"saltclusterd/integration/herd"
	"saltclusterd/integration/scale"
	"saltclusterd/sidecar/saltcrypt"
)

// Small trees tell what any costs (the first), a file, and a MiB. A MiB of a large file costs more than one of many files, so the files have the
// size of those that are foretold. Each comes again when the others are there, which tells what those cost.
var (
	smallTrees = slices.Repeat([]scale.Tree{
		{Files: 10, Bytes: 10 << 10, Rename: true}, {Files: 4000, Bytes: 4000 << 10, Rename: true}, {Files: 1600, Bytes: 64 << 20, Rename: true},
	}, 2)
	largeTrees = slices.Repeat([]scale.Tree{{Files: 5000, Bytes: 200 << 20, Rename: true}, {Files: 10_000, Bytes: 10_000 << 10, Rename: true}}, 3)
)

// modelKeys is how many keys are accepted one after the other.
const modelKeys = 60

// modelWithin is how far the model may be off.
const modelWithin = 0.25

// calibrated are those of the herds from which costs are calibrated: two, so that what each minion costs is told from what is there anyway.
var calibrated = []int{500, 2000}

const (
	calibratedJobs = 4
	// modelFew have the job and return it while all others only hear: the difference is what returns cost.
	modelFew = 10
	fewGlob  = "herd0000?"
)

// modelSeen is all that a run measures, and all that the comparison needs.
type modelSeen struct {
	Run     string // when and where
	Load    string
	CPUs    int
	Machine machine
	Small   []*sights // from which costs are calibrated
	Large   []*sights // with which the model is compared; one size may be there several times
}

// machine is what can be measured of one without a cluster.
type machine struct {
	Sign, Fsync, SyncFile, DiskMiB time.Duration

	// FsyncBusy is Fsync while all processors are busy: the disk of a virtual machine is a program of its host's, which has to get its turn.
	FsyncBusy time.Duration
	// Check is what a played minion does about a sign-in.
	Check time.Duration
	// Return and Copy are the CPU of writing one into a job cache, as its publisher and as a replica do; SyncRet is what it adds to a sync.
	Return, Copy, SyncRet time.Duration

	// Pace is what the meter's piece of work took when nothing else was done.
	Pace time.Duration

	Files string // file system
}

// model compares integration/scale with what it models: three nodes behind HAProxy with a herd, all on this machine. What CPU each kind of
// process takes is calibrated with two small herds, in the same run; the rest follows from the structure.
func (b *bench) model(ctx context.Context) error {
	seen, err := b.modelSeen(ctx)
	if err != nil {
		return err
	}
	return b.modelTables(seen)
}

// modelSeen measures, or reads what was measured before; with both -against and -save large herds are measured once more and added to it.
func (b *bench) modelSeen(ctx context.Context) (*modelSeen, error) {
	if b.against == "" {
		seen, err := b.calibrating(ctx)
		if err != nil {
			return nil, err
		}
		return seen, b.large(ctx, seen)
	}
	seen, err := readSeen(b.against)
	if err != nil {
		return nil, fmt.Errorf("read what was measured: %w", err)
	}
	if b.save == "" {
		return seen, nil
	}
	return seen, b.large(ctx, seen)
}

// calibrating looks at the machine and at the small herds.
func (b *bench) calibrating(ctx context.Context) (*modelSeen, error) {
	m, err := lookAtMachine()
	if err != nil {
		return nil, err
	}
	seen := &modelSeen{Run: b.out.run, Load: loadAverage(), CPUs: runtime.NumCPU(), Machine: m}
	for _, n := range calibrated {
		s, err := b.sights(ctx, n, calibratedJobs, smallTrees)
		if err != nil {
			return nil, err
		}
		seen.Small = append(seen.Small, s)
	}
	return seen, nil
}

// large measures what the model is compared with.
func (b *bench) large(ctx context.Context, seen *modelSeen) error {
	for _, n := range b.modelSizes {
		s, err := b.sights(ctx, n, b.modelJobs, largeTrees)
		if err != nil {
			return err
		}
		seen.Large = append(seen.Large, s)
		if err := seen.save(b.save); err != nil {
			return err
		}
	}
	return nil
}

// runs are those of one size.
type runs []*sights

// bySize puts runs of the same size together, in the order in which they came.
func bySize(all []*sights) (out []runs) {
	for _, s := range all {
		i := slices.IndexFunc(out, func(r runs) bool { return r[0].Minions == s.Minions })
		if i < 0 {
			i, out = len(out), append(out, nil)
		}
		out[i] = append(out[i], s)
	}
	return out
}

// one is a figure that each run has once.
func (r runs) one(of func(*sights) float64) (out series) {
	for _, s := range r {
		out.add(of(s))
	}
	return out
}

// all is a figure that a run has several times.
func (r runs) all(of func(*sights) series) (out series) {
	for _, s := range r {
		out = append(out, of(s)...)
	}
	return out
}

// trees are those that are alike, in the order in which the first of each came.
func (r runs) trees() (out [][]treeSeen) {
	for _, s := range r {
		for _, t := range s.Trees {
			i := slices.IndexFunc(out, func(of []treeSeen) bool { return of[0].Files == t.Files && of[0].Bytes == t.Bytes })
			if i < 0 {
				i, out = len(out), append(out, nil)
			}
			out[i] = append(out[i], t)
		}
	}
	return out
}

// lookAtMachine measures what can be measured at once.
func lookAtMachine() (m machine, err error) {
	key, _, err := clusterKey()
	if err != nil {
		return m, err
	}
	work := newPiece()
	var paces []time.Duration
	for range 50 {
		time.Sleep(meterEvery) // as the meter has it: right after each other they take a third, for the processor has learnt them by heart
		paces = append(paces, work.take())
	}
	m.Pace = quantile(paces, 0.5)
	m.Sign, err = quickest(20, func() error { _, err := key.Sign(saltcrypt.PKCS1v15SHA1, []byte("how long does it take?")); return err })
	if err != nil {
		return m, err
	}
	if err := m.lookAtMinions(key.Public().Text()); err != nil {
		return m, err
	}
	dir, err := os.MkdirTemp("", "saltcluster-bench-")
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(dir)
	m.Files = fileSystem(dir)
	return m, errors.Join(m.lookAtDisk(dir), m.lookAtReturns(dir))
}

// lookWhileBusy is the same block while a process on each processor does nothing but use it.
func (m *machine) lookWhileBusy(f *os.File) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), busyMost)
	defer cancel()
	busy, err := occupy(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, busy.stop()) }()
	block := make([]byte, 4096)
	var took []time.Duration
	for range busyLooks {
		time.Sleep(10 * time.Millisecond)
		if _, err := f.Write(block); err != nil {
			return err
		}
		began := time.Now()
		if err := f.Sync(); err != nil {
			return err
		}
		took = append(took, time.Since(began))
		if ctx.Err() != nil {
			return fmt.Errorf("%d looks at a disk took longer than %s", busyLooks, busyMost)
		}
	}
	var sum time.Duration
	for _, d := range took {
		sum += d
	}
	m.FsyncBusy = max(m.Fsync, sum/time.Duration(len(took))) // a few of them take long, and they count
	return nil
}

// busyLooks is how many syncs are looked at then, busyMost how long that takes at most.
const (
	busyLooks = 100
	busyMost  = 20 * time.Second
)

// lookAtMinions measures what RSA a played minion does for a sign-in: its token encrypted, three texts opened, two signatures of the
// master's verified, which cost what the encryption does.
func (m *machine) lookAtMinions(text string) error {
	key, err := herd.NewFastKey()
	if err != nil {
		return err
	}
	own, err := saltcrypt.ParsePublicKey(key.PublicText())
	if err != nil {
		return err
	}
	master, err := saltcrypt.ParsePublicKey(text)
	if err != nil {
		return err
	}
	sealed, err := own.EncryptOAEP(saltcrypt.OAEPSHA1, []byte("a key"))
	if err != nil {
		return err
	}
	m.Check, err = quickest(20, func() error {
		for range 3 {
			if _, err := key.DecryptOAEP(saltcrypt.OAEPSHA1, sealed); err != nil {
				return err
			}
		}
		for range 3 {
			if _, err := master.EncryptOAEP(saltcrypt.OAEPSHA1, []byte("a token")); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

// lookAtReturns measures what returns cost that are written as the job cache and its replicas write them: a directory under another
// name, a file in it, which on a replica is another name of one that says the same, and the directory's own name.
func (m *machine) lookAtReturns(dir string) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	write := func(into string, n int, fill func(file string) error) (time.Duration, error) {
		if err := os.Mkdir(into, 0o755); err != nil {
			return 0, err
		}
		began := threadCPU()
		for i := range n {
			temp, name := filepath.Join(into, fmt.Sprint(".temp", i)), filepath.Join(into, fmt.Sprint("minion", i))
			err := os.Mkdir(temp, 0o755)
			if err == nil {
				err = errors.Join(fill(filepath.Join(temp, "return.p")), os.Rename(temp, name))
			}
			if err != nil {
				return 0, err
			}
		}
		return (threadCPU() - began) / time.Duration(n), nil
	}
	var returns, copies, synced []time.Duration
	twin := filepath.Join(dir, "twin")
	whole := func(file string) error { return os.WriteFile(file, []byte{0xc3}, 0o600) }
	if err := whole(twin); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	for round := range 4 {
		r, err := write(filepath.Join(dir, fmt.Sprint("job", round)), diskFiles, whole)
		if err != nil {
			return err
		}
		took, err := quickest(1, func() error { return unix.Syncfs(int(d.Fd())) })
		if err != nil {
			return err
		}
		c, err := write(filepath.Join(dir, fmt.Sprint("copy", round)), diskFiles, func(file string) error { return os.Link(twin, file) })
		if err != nil {
			return err
		}
		returns, copies, synced = append(returns, r), append(copies, c), append(synced, took)
	}
	m.Return, m.Copy, m.SyncRet = quantile(returns, 0.25), quantile(copies, 0.25), max(0, quantile(synced, 0.25)-m.Fsync)/diskFiles
	return nil
}

// threadCPU is what the calling thread has used.
func threadCPU() time.Duration {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts) // which cannot fail
	return time.Duration(ts.Nano())
}

// What is written to see how long a disk takes.
const (
	diskMiBs  = 64
	diskFiles = 500
)

// lookAtDisk measures a block of a file that is on the disk, a file in one go, and what small files add to a sync of the file system.
func (m *machine) lookAtDisk(dir string) error {
	f, err := os.Create(filepath.Join(dir, "file"))
	if err != nil {
		return err
	}
	defer f.Close()
	block, much := make([]byte, 4096), bytes.Repeat([]byte("not only zeros "), diskMiBs<<20/15)
	m.Fsync, err = quickest(20, func() error {
		if _, err := f.Write(block); err != nil {
			return err
		}
		return f.Sync()
	})
	if err != nil {
		return err
	}
	var waits []time.Duration // without the writing, which is CPU
	for range 4 {
		if _, err := f.Write(much); err != nil {
			return err
		}
		took, err := quickest(1, f.Sync)
		if err != nil {
			return err
		}
		waits = append(waits, took)
	}
	if err := m.lookWhileBusy(f); err != nil {
		return err
	}
	m.DiskMiB = max(0, quantile(waits, 0.25)-m.Fsync) / diskMiBs
	var synced []time.Duration
	for round := range 4 {
		for i := range diskFiles {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d-%d", round, i)), []byte("a return, or so"), 0o600); err != nil {
				return err
			}
		}
		took, err := quickest(1, func() error { return unix.Syncfs(int(f.Fd())) })
		if err != nil {
			return err
		}
		synced = append(synced, took)
	}
	m.SyncFile = max(0, quantile(synced, 0.25)-m.Fsync) / diskFiles
	return nil
}

// quickest is the median time of the quicker half of n calls: what others do on the machine meanwhile does not count.
func quickest(n int, f func() error) (time.Duration, error) {
	var took []time.Duration
	for range n {
		began := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	return quantile(took, 0.25), nil
}
