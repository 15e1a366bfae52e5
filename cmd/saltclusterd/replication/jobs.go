package replication

import (
	"time"

	"saltclusterd/fsync/jobs"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/localmaster"
)

// jobsMaster returns what the local master's configuration says about its jobs.
func jobsMaster(master *localmaster.Config, owner localmaster.Owner, umask func() uint32) jobs.Master {
	return jobs.Master{
		CacheDir: master.CacheDir, UID: owner.UID, GID: owner.GID, HashType: master.Text("hash_type"),
		Umask: umask, Verified: master.Bool("verify_env"),
		JobCache: master.Text("master_job_cache"), External: master.Bool("ext_job_cache"), Keep: keepJobs(master),
	}
}

// keepJobs returns how long the local master keeps jobs.
func keepJobs(master *localmaster.Config) time.Duration {
	return jobs.Keep(master.Version.Major, master.Int("keep_jobs_seconds"), master.Int("keep_jobs"))
}

// DescribeJobs describes in the status how far jobs are replicated.
func DescribeJobs(st jobs.Status) *adminapi.Jobs {
	out := &adminapi.Jobs{Off: st.Off, Known: st.Jobs, Unknown: st.More}
	for _, p := range st.Peers {
		out.Peers = append(out.Peers, adminapi.JobPeer{
			Node: string(p.ID), Off: p.Off, Waiting: p.Waiting, Differ: p.Dirty, All: p.All, Error: p.Err,
		})
	}
	return out
}
