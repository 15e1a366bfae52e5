package scale

import "time"

// Row is a figure of docs/performance.md beside what the model says of the same: all on one machine of two processors, on tmpfs.
type Row struct {
	What            string
	Model, Measured float64
	Note            string
}

// Rows returns them. Costs of trees come from the rows themselves, and CPU of a job, too; times of jobs, keys and sign-ins do not.
func Rows(c *Costs) []Row {
	lab := *c
	lab.Fsync, lab.FsyncBusy, lab.RaftStore = 10*time.Microsecond, 10*time.Microsecond, 20*time.Microsecond
	lab.SyncFile, lab.SyncRet = 0, 0
	world := func(s Site) *World {
		s.Shared, s.Cores, s.ProxyThreads = true, 2, 2
		return NewWorld(s, &lab)
	}
	factors := Factors{Publisher: JobFactors.Publisher, Others: JobFactors.Others, Minions: 1.25} // 0.10 ms of the herd's own
	one := world(Site{Nodes: 1, Direct: true, Minions: 5000, Slower: factors}).Job()
	three := world(Site{Nodes: 3, Minions: 8000, Slower: factors}).Job()
	keys := world(Site{Nodes: 3}).Keys(100, 1)
	storm := world(Site{Nodes: 3, Minions: 1000}).Storm(500, 0, DefaultVersions)
	rows := []Row{
		{"test.ping of 5,000, one node: s until the last return is acknowledged", one.LastEnd.Seconds(), 1.02, "the command line tool that has published, and who looks, need the processors, too"},
		{"– s until whole in the job cache", one.Cached.Seconds(), 1.13, "as above"},
		{"jobs on three nodes, 8,000: s, publisher has all until the others have", (max(three.Copied[1], three.Copied[2]) - three.Cached).Seconds(), 0.12, "looked at every 50 ms"},
		{"ms until an accepted key is on all nodes, p99", keys.Quantile(0.99).Seconds() * 1000, 198, ""},
		{"a node of three is killed, 1,000: s until the last minion is served", storm.LastServed.Seconds(), 10.0, ""},
		{"– s, slowest sign-in, 333 of them", storm.Slowest.Seconds(), 3.7, "tests ran beside, load 4.3 before: the model has the machine for itself"},
	}
	for _, t := range []struct {
		what     string
		tree     Tree
		measured float64
		note     string
	}{
		{"5,000 files, 200 MB, to two nodes: s", Tree{Files: 5000, Bytes: 200e6}, 2.60, "costs come from here"},
		{"20,000 files, 20 MB", Tree{Files: 20_000, Bytes: 20e6}, 6.07, "costs come from here"},
		{"50,000 files, 100 MB", Tree{Files: 50_000, Bytes: 100e6}, 14.85, ""},
		{"one file of 2 GiB", Tree{Files: 1, Bytes: 2 << 30}, 33.34, "all nodes of the lab have one disk, in the model each has one"},
	} {
		rows = append(rows, Row{t.what, world(Site{Nodes: 3}).Rollout(t.tree).Last.Seconds(), t.measured, t.note})
	}
	return rows
}
