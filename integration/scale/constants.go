package scale

import "time"

// The program's own constants. Most are unexported or defaults of a configuration: TestProgramConstants reads them from
// the sources and fails when one differs.
const (
	// sidecar/signin
	signInQueue   = 8192
	signInTimeout = 4500 * time.Millisecond
	signInShare   = 0.5
	budgetBurst   = 0.05

	// fsync/keydir
	keyDebounce = 25 * time.Millisecond
	keySettle   = 60 * time.Millisecond
	syncEach    = 32

	// consensus
	keyCommands = 256 // in a request
	maxVoters   = 5

	// sidecar, sidecar/spool and the configuration
	peerTimeout  = 4 * time.Second
	maxInFlight  = 16384
	groupBytes   = 16 << 20
	batchRecords = 256

	// sidecar/jobcache paces all events, and on 3008, which cuts a subscriber that is far behind, those of one job.
	busRate  = 2000.0
	busBurst = 4000.0
	jobRate  = 500.0
	jobBurst = 6000.0 // three fifths of what such a subscriber may be behind

	// fsync/jobs
	linger      = 100 * time.Millisecond
	copyRecords = 2048
	copyBytes   = 1 << 20
)

// Sizes that are estimates.
const (
	keyBytes   = 700 // of a command with a key
	raftBytes  = 150 // of an AppendEntries without entries, TLS included
	copyWeight = 200 // of a record in a queue, besides its return
)

// As a stock minion returns.
const (
	returnTimer    = 5 * time.Second
	returnTimerMax = 10 * time.Second
	returnTries    = 3
)
