// Package migration moves a node from a file system that masters share to its own disk, and back.
//
// Host owns the state of the migration on disk (package fsync/unshare), the plan of what is copied where, and the files
// with which the configurations of the master and of saltclusterd refer to the copies. It exists without a membership:
// Repair undoes an interrupted switch before any configuration is read. Steps runs one step at a time in a service for
// minions. Cluster asks all members and has one of them begin a step; Verbs answers operators.
//
// In: both configurations, and functions of the running service (StepsConfig). Out: copies and configuration files on
// disk, a report for operators, a health.Result, and whether the master works with its old configuration
// (MasterOutdated) or this node replicates the share (StandsIn).
//
// Promises: saltclusterctl migrate decides when each step begins and stores no state. Every step can be repeated and
// resumed; after a switch, the process that takes over from this one resumes it (Resume). Each change of the state is
// on disk before anything depends on it. The share is only read. If this process may not write, the step waits and
// names the commands for the operator.
package migration
