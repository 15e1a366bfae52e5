// Package packages tries the packages for real: they are made twice and
// compared, installed in a Debian 12 of their own, whose systemd is the first
// process of its namespaces, beside a stock salt-master and a minion; upgraded
// under that minion, removed, purged; the rpm with rpm itself.
//
// It needs root, debootstrap and a mirror of Debian, which is the one that
// this machine's own apt uses. The base system is kept in the cache of
// integration/setup; every run works on an overlay of it, which is thrown away.
package packages
