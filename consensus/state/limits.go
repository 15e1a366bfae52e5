package state

// Bounds on what a command may carry and on what the state may hold. They are
// part of the replicated behaviour: two versions with different numbers would
// disagree about the same log.
const (
	MaxMembers        = 64
	MaxKeys           = 1_000_000 // live keys
	MaxTombstones     = 2_000_000
	MaxDenied         = 100_000
	MaxGossipKeys     = 3
	MaxRoots          = 64 // remembered revisions of the trees
	MaxRootsHeld      = 16 // of these, revisions on hold
	MaxRootsKind      = 32 // bytes in the kind of a revision
	MaxWeight         = 100_000
	MaxID             = 255      // bytes in a minion or node id
	MaxPub            = 16 << 10 // bytes in a public key file; RSA 8192 takes 1.5 KiB
	MaxText           = 512      // bytes in a cause, reason or address
	MaxTokens         = 128      // join tokens, spent ones included
	MaxTokenID        = 32       // bytes in the id of a join token
	MinJoinSecret     = 22       // bytes in a cluster secret
	MaxJoinSecret     = 1024
	MaxSealedIdentity = 16 << 10 // bytes of a sealed private key

	MaxCommands = 1024    // commands in one request
	MaxRequests = 1024    // requests in one entry
	MaxEntry    = 1 << 20 // bytes of an encoded entry
	MaxRecord   = 4 << 20 // bytes of one snapshot record

	dedupeRequests = 8192  // remembered requests
	dedupeResults  = 65536 // remembered results over all requests

	keepSpentTokens = 7 * 24 * 3600 * 1000 // milliseconds in which a spent token is still listed
)
