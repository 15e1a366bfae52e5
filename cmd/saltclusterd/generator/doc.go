// Package generator is saltclusterd as a generator of systemd (systemd.generator(7)). It gives systemd those settings
// of saltclusterd.service that depend on the salt-master's configuration.
//
// In: the configurations of saltclusterd and of the salt-master, read the way the daemon reads them. Out: a drop-in
// below the directory that systemd names, with User= (the user that the master runs as), ReadWritePaths= (the
// directories that saltclusterd writes to and that the unit makes read-only), and PrivateTmp=no if one of these is
// below a temporary directory.
//
// Promises: systemd runs it at each reload of the units, early at boot too. It therefore starts no other program, uses
// no network, and writes nothing but the drop-in. A configuration that it cannot read changes nothing in the installed
// unit; the daemon reports the error when it starts.
package generator
