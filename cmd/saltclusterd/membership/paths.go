package membership

import "path/filepath"

// RecordPath returns the path of the record.
func RecordPath(stateDir string) string { return filepath.Join(stateDir, "membership.json") }

// RosterPath returns the path of the saved roster (peer.Book).
func RosterPath(stateDir string) string { return filepath.Join(stateDir, "roster.json") }
