// Package adopt makes a host with a stock salt-master a node of saltclusterd, and undoes that.
//
// It inspects the host (Look), plans the changes (Plan, Leaving), and writes files (Write, Restore); it starts and
// restarts nothing. Look reads the master's configuration as Salt does, saltclusterd's own, key files, /proc; it
// needs neither daemon to run. Plans are made from that alone, so that tests need no host.
//
// Vocabulary: a Site is what was found on a host; a check is one line about it (doctor.Finding); the drop-in is the
// one file that moves the master to loopback (localmaster.DropIn); a step is something for a person to type. The
// remaining steps are derived from what runs and listens, so each call names the next one.
//
// Promises: nothing is written before all checks have passed; a file that this package did not write is never
// overwritten or removed; files appear whole or not at all; the effects of adding and of removing the
// drop-in are computed beforehand, together with all other files of the master's configuration; a secret that is made
// here is never printed.
package adopt
