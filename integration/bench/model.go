package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"saltclusterd/integration/scale"
	"saltclusterd/sidecar/saltcrypt"
)

// Trees of which the first three tell what a file costs, what a MiB, and what any.
var (
	smallTrees = []scale.Tree{
		{Files: 2000, Bytes: 2000 << 10, Rename: true}, {Files: 8, Bytes: 32 << 20, Rename: true}, {Files: 10, Bytes: 10 << 10, Rename: true},
	}
	largeTrees = []scale.Tree{{Files: 5000, Bytes: 200 << 20, Rename: true}, {Files: 10_000, Bytes: 10_000 << 10, Rename: true}}
)

// modelKeys is how many keys are accepted one after the other.
const modelKeys = 60

// modelWithin is how far the model may be off.
const modelWithin = 0.25

// calibrated are those of the herds from which costs are calibrated: two, so that what each minion costs is told from what is there anyway.
var calibrated = []int{250, 750}

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
	Sign, Fsync time.Duration
	Files       string // file system
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
	f, err := os.Create(filepath.Join(os.TempDir(), "saltcluster-bench-"+rand.Text()))
	if err != nil {
		return m, err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	block := make([]byte, 4096)
	m.Fsync, err = quickest(20, func() error {
		if _, err := f.Write(block); err != nil {
			return err
		}
		return f.Sync()
	})
	m.Files = fileSystem(os.TempDir())
	return m, err
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
