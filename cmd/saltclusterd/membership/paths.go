package membership

import "path/filepath"

// RecordPath returns the path of the record.
func RecordPath(stateDir string) string { return filepath.Join(stateDir, "membership.json") }

// RosterPath returns the path of the saved roster (peer.Book).
func RosterPath(stateDir string) string { return filepath.Join(stateDir, "roster.json") }

// RemovalPath returns the path of the file that says that the node was removed and must not join on its own.
func RemovalPath(stateDir string) string { return filepath.Join(stateDir, "removed.json") }

// FormerPath returns the path of the list of members that a recovery dropped.
func FormerPath(stateDir string) string { return filepath.Join(stateDir, "former.json") }

// ClockPath returns the path of the floor of the clock of serials.
func ClockPath(stateDir string) string { return filepath.Join(stateDir, "clock") }

// RaftDir returns the directory of the consensus log.
func RaftDir(stateDir string) string { return filepath.Join(stateDir, "raft") }

// KeyDir returns the directory of what package keydir keeps.
func KeyDir(stateDir string) string { return filepath.Join(stateDir, "keydir") }

// KeyDirBase returns the path of the state that package keydir last agreed on with consensus. Without it consensus
// decides about every key in the key directory.
func KeyDirBase(stateDir string) string { return filepath.Join(KeyDir(stateDir), "keydir.json") }
