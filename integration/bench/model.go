package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
	"saltclusterd/integration/scale"
	"saltclusterd/sidecar/saltcrypt"
)

// Small trees tell what any costs (the first), a file, a MiB, and what is there already (the last). A MiB of a large file costs more than one
// of many files, so the files have the size of those that are foretold.
var (
	smallTrees = []scale.Tree{
		{Files: 10, Bytes: 10 << 10, Rename: true}, {Files: 4000, Bytes: 4000 << 10, Rename: true}, {Files: 800, Bytes: 32 << 20, Rename: true},
		{Files: 10, Bytes: 10 << 10, Rename: true},
	}
	largeTrees = []scale.Tree{{Files: 5000, Bytes: 200 << 20, Rename: true}, {Files: 10_000, Bytes: 10_000 << 10, Rename: true}}
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
	Large   []*sights // with which the model is compared
}

// machine is what can be measured of one without a cluster.
type machine struct {
	Sign, Fsync, SyncFile, DiskMiB time.Duration
	Files                          string // file system
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

// modelSeen measures, or reads what was measured before.
func (b *bench) modelSeen(ctx context.Context) (*modelSeen, error) {
	if b.against != "" {
		seen := &modelSeen{}
		raw, err := os.ReadFile(b.against)
		if err == nil {
			err = json.Unmarshal(raw, seen)
		}
		if err != nil {
			return nil, fmt.Errorf("read what was measured: %w", err)
		}
		return seen, nil
	}
	m, err := lookAtMachine()
	if err != nil {
		return nil, err
	}
	seen := &modelSeen{Run: b.out.run, Load: loadAverage(), CPUs: runtime.NumCPU(), Machine: m}
	for _, n := range calibrated {
		trees := smallTrees
		if n != calibrated[0] {
			trees = nil
		}
		s, err := b.sights(ctx, n, calibratedJobs, trees)
		if err != nil {
			return nil, err
		}
		seen.Small = append(seen.Small, s)
	}
	for _, n := range b.modelSizes {
		s, err := b.sights(ctx, n, b.modelJobs, largeTrees)
		if err != nil {
			return nil, err
		}
		seen.Large = append(seen.Large, s)
		if err := seen.save(b.save); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

// save writes a file unless it has no name.
func (s *modelSeen) save(name string) error {
	if name == "" {
		return nil
	}
	raw, err := json.MarshalIndent(s, "", "\t")
	if err == nil {
		err = os.WriteFile(name, raw, 0o644)
	}
	if err != nil {
		return fmt.Errorf("save what was measured: %w", err)
	}
	return nil
}

// lookAtMachine measures what can be measured at once.
func lookAtMachine() (m machine, err error) {
	key, err := saltcrypt.GenerateMasterKey(2048)
	if err != nil {
		return m, err
	}
	m.Sign, err = quickest(20, func() error { _, err := key.Sign(saltcrypt.PKCS1v15SHA1, []byte("how long does it take?")); return err })
	if err != nil {
		return m, err
	}
	dir, err := os.MkdirTemp("", "saltcluster-bench-")
	if err != nil {
		return m, err
	}
	defer os.RemoveAll(dir)
	m.Files = fileSystem(dir)
	return m, m.lookAtDisk(dir)
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
