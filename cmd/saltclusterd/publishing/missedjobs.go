package publishing

import (
	"saltclusterd/fsync/jobs"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/wall"
)

// MissedOff returns why jobs are not searched for that were published while nothing was connected to the local master;
// empty: they are. shared: the masters share a file system. late: the option late_jobs. syndics is the mode of the rule
// for returns of syndics.
func MissedOff(master *localmaster.Config, shared, late bool, syndics wall.Mode) string {
	switch {
	case shared:
		return "the masters share their job cache: which of them published a job is not known"
	case !late:
		return "late_jobs is false"
	case syndics != wall.Enforce:
		return "the rule syndic_returns is not enforced: a minion could put jobs into the job cache"
	case master.Bool("order_masters"):
		return "order_masters is set: syndics remember no jobs"
	}
	return jobs.Master{
		HashType: master.Text("hash_type"), JobCache: master.Text("master_job_cache"), External: master.Bool("ext_job_cache"),
	}.Off()
}
