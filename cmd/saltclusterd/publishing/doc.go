// Package publishing passes jobs of the local salt-master on, and knows which jobs the masters of the cluster have
// published.
//
// A Publisher takes each publication from the local master, or from its job cache when nothing was connected at that
// moment, and sends it once. KnownJobs judges the ids of jobs: which job a return belongs to, whether a return can be
// of a job from here, and whether two masters gave one id to different jobs.
//
// In: publications, the table of published jobs (package sidecar/router), the roster, the master's job cache. Out:
// publications for the fan-out, judgements for package sidecar/wall, a health.Result.
//
// Promises: a job is recorded before it leaves, so that no return overtakes that; a job of this node is never judged as
// not published while its publication is in the table or in the job cache.
package publishing
