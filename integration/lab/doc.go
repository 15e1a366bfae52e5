// Package lab runs real things together: stock Salt masters and minions of several versions, HAProxy, saltclusterd,
// each on a host of its own, with the faults one wants to see them survive.
//
// # Vocabulary
//
// A Lab owns a directory, a network and everything started in it. A Host is a place with an address: as root a network
// namespace (with its own host name and /etc/hosts) on a bridge that lives in a namespace too, so that nothing shows
// in the machine's own network and two labs never meet; without root an address out of 127.0.0.0/8, and then the
// network faults return ErrNeedsRoot. A Process is a command and all its descendants; Master, Minion, Daemon and
// HAProxy are Processes that know how to configure themselves and when they are ready. A Cluster is the usual set of
// all of them.
//
// # Promises
//
// Close ends every process that was started here, by its own id, and removes the namespaces; so does the death of the
// program, even by SIGKILL, for each process sits below a supervisor (this same binary, started again) that kills its
// tree when the program's end of a pipe closes. What a killed program leaves behind, namespaces and directories, the
// next New removes. Logs of all processes are files under Dir()/log. Commands of Salt are forks of a process that has
// imported Salt's code, and with SALTCLUSTER_LONG=1 programs of their own. Waiting is done by Eventually, which names
// the last state it saw when time is up.
//
// Faults: Partition, Cut, Isolate, Delay (with loss) and Heal for the network; Kill, Pause and Signal for a Process,
// SetSeams for what it is told about the time and its fsync; PowerOff, FillDisk and BreakDisk for a Host with a disk of
// its own.
//
// In: a directory of Salt virtualenvs (made by "make setup") and one with our binaries ("make build"). The package uses
// ip(8) and, for Delay where the kernel has it, tc(8).
package lab
