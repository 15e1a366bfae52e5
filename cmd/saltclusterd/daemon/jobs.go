package daemon

import (
	"saltclusterd/cmd/saltclusterd/masterlink"
	"saltclusterd/consensus/state"
	"saltclusterd/fsync/jobs"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/jobcache"
	"saltclusterd/sidecar/ring"
)

// newJobs returns the store that gives every master the jobs of the others.
func (s *service) newJobs() (*jobs.Store, error) {
	d := s.m.d
	owner, err := d.master.Owner()
	if err != nil {
		return nil, err
	}
	return jobs.New(jobs.Config{
		Config: s.replicated("jobs"), Self: d.id, Master: masterlink.JobsMaster(d.master, owner, s.umask.Mask),
		Off: s.jobsOff(), Replicas: s.m.jobReplicas, Contested: s.jobs.Contested, Received: s.missed.Seen,
	})
}

// jobsOff says why the cluster replicates no jobs; empty when it does.
func (s *service) jobsOff() string {
	switch cfg := s.m.d.cfg.Cluster; {
	case s.m.d.shares() && !s.m.d.migration.StandsIn():
		return "cluster_isolated_filesystem is False: the masters share their job cache"
	case cfg.JobReplicas <= 1:
		return "cluster_job_replicas is 1"
	}
	return ""
}

// returnStored notes each return that was written to the local job cache without the master.
func (s *service) returnStored(job *jobcache.Job) {
	ret := jobs.Return{Data: job.Return, Out: job.Out}
	if job.Unasked() {
		s.cache.Unasked(job.JID, job.Minion, ret)
		return
	}
	s.cache.Stored(job.JID, job.Minion, ret, job.Ahead)
}

// jobReplicas lists the nodes that shall have a job. A node that is down or drained for a while stays one of them.
func (m *member) jobReplicas(jid string) []node.ID {
	want := m.d.cfg.Cluster.JobReplicas
	masters := m.ringOf(m.Consensus.View())
	if len(masters) > want {
		return ring.Ranked(jid, masters)[:want]
	}
	out := make([]node.ID, 0, len(masters))
	for _, n := range masters {
		out = append(out, n.ID)
	}
	return out
}

// ringOf lists the members that have a master, as the ring takes them.
func (m *member) ringOf(v state.View) []ring.Node {
	var out []ring.Node
	for _, mem := range v.Members() {
		if !mem.Witness {
			out = append(out, ring.Node{ID: mem.ID, Weight: max(mem.Weight, 1)})
		}
	}
	return out
}
