// Package mastertest runs a stock salt-master of a wanted version for a test: in a directory of its own, on a loopback
// address of its own, as the current user, stopped with all its children when the test ends.
//
// The Salt installations are virtual environments found through SALTCLUSTER_VENVS=dir, as <dir>/<version>/bin/python;
// without it tests that need a master are skipped.
package mastertest
