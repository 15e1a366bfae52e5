package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"saltclusterd/integration/scale"
	"saltclusterd/sidecar/saltcrypt"
)

// Trees of which the first two tell what a file costs, and what a MiB.
var (
	smallTrees = []scale.Tree{{Files: 2000, Bytes: 2000 << 10}, {Files: 8, Bytes: 32 << 20}}
	largeTrees = []scale.Tree{{Files: 5000, Bytes: 200 << 20}, {Files: 10_000, Bytes: 10_000 << 10}}
)

// modelKeys is how many keys are accepted one after the other.
const modelKeys = 60

// modelWithin is how far the model may be off.
const modelWithin = 0.25

// model compares integration/scale with what it models: three nodes behind HAProxy with a herd, all on this machine. What CPU each kind of
// process takes is calibrated with a small herd, in the same run; the rest follows from the structure.
func (b *bench) model(ctx context.Context) error {
	costs, note, err := b.modelCosts()
	if err != nil {
		return err
	}
	site := scale.Site{Nodes: 3, Shared: true, Cores: runtime.NumCPU(), ProxyThreads: runtime.NumCPU(), Replicas: 3}
	var small *sights
	if err := b.sights(ctx, modelSmall, modelSmallJobs, smallTrees, &small); err != nil {
		return err
	}
	fixed := calibrate(&site, costs, small)
	calibrateRoots(site, costs, small.trees)
	b.say("model: factors %+v", site.Slower)
	for _, n := range b.modelSizes {
		load := loadAverage()
		var seen *sights
		if err := b.sights(ctx, n, b.modelJobs, largeTrees, &seen); err != nil {
			return err
		}
		b.out.table(fmt.Sprintf("The model and the measured, %d minions", n), fmt.Sprintf(
			"Three nodes behind HAProxy and the played minions, all on this machine. What CPU each kind of process needs was calibrated with %d minions "+
				"in the same run (%s); %s. %d jobs; the median is compared. Load average %s before; others left %s of the machine during the jobs, "+
				"which the model knows.",
			modelSmall, factorsText(site.Slower), note, b.modelJobs, load, seen.share.show("%.2f")),
			[]string{"figure", "model", "measured", "model/measured", fmt.Sprintf("within %.0f %%", modelWithin*100)}, compare(site, costs, fixed, seen))
	}
	return nil
}

const (
	modelSmall     = 500
	modelSmallJobs = 4
	// modelFew have the job and return it while all others only hear: the difference is what returns cost.
	modelFew = 10
	fewGlob  = "herd0000?"
)

func factorsText(f scale.Factors) string {
	return fmt.Sprintf("times the table of costs: publisher %.2f, other nodes %.2f, masters %.2f, HAProxy %.2f, minions %.2f",
		f.Publisher, f.Others, f.Master, f.Proxy, f.Minions)
}

// modelCosts are those of the model, with what can be measured here at once.
func (b *bench) modelCosts() (*scale.Costs, string, error) {
	c := scale.MeasuredCosts()
	key, err := saltcrypt.GenerateMasterKey(2048)
	if err != nil {
		return nil, "", err
	}
	sign, err := quickest(20, func() error { _, err := key.Sign(saltcrypt.PKCS1v15SHA1, []byte("how long does it take?")); return err })
	if err != nil {
		return nil, "", err
	}
	c.SignIn += 2*sign - 2*c.Seal
	c.Seal = sign
	f, err := os.Create(filepath.Join(os.TempDir(), "saltcluster-bench-"+rand.Text()))
	if err != nil {
		return nil, "", err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	block := make([]byte, 4096)
	c.Fsync, err = quickest(20, func() error {
		if _, err := f.Write(block); err != nil {
			return err
		}
		return f.Sync()
	})
	if fileSystem(os.TempDir()) == "tmpfs" {
		c.SyncFile, c.DiskMiB = 0, 0
	}
	return c, fmt.Sprintf("an RSA private operation takes %s here, an fsync %s (%s)", sign.Round(10*time.Microsecond),
		c.Fsync.Round(10*time.Microsecond), fileSystem(os.TempDir())), err
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
