//go:build race

package saltcrypt

// raceEnabled says that the race detector is on, under which sync.Pool forgets on purpose.
const raceEnabled = true
