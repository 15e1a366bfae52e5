// Package generator is saltclusterd as a generator of systemd
// (systemd.generator(7)): it gives the service manager settings that the unit
// cannot know, because they are in the salt-master's configuration.
//
// In: saltclusterd's configuration and the salt-master's, read the way the
// daemon reads them. Out: a drop-in for saltclusterd.service, below the
// directory that systemd names: User=, the user that the master runs as, and
// ReadWritePaths=, the directories that saltclusterd writes to and the unit has
// closed. PrivateTmp=no, when one of them is a temporary one.
//
// It runs whenever systemd reads its units, early at boot too: it starts no
// other program, asks no network, and writes nothing but the drop-in. What it
// cannot read it leaves to the unit as it was installed; the daemon says what
// is wrong when it starts.
package generator
