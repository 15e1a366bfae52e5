// Package spool is a durable journal: an appended record is on disk when Append returns, and reaches every consumer at
// least once and in order, whatever is killed or loses power. saltclusterd keeps the returns of minions in it between
// the acknowledgement and the master's job cache.
//
// In: records (a load and the facts of its envelope) from any number of goroutines. Out: batches for consumers. Each
// consumer has a cursor of its own, so that one that waits (for the master's event bus) does not hold up another (which
// writes files).
//
// Promises:
//
//   - One fsync serves all appends that wait at that time. A failed append was not acknowledged, and the error gives
//     the reason: ErrFull (the journal has its configured size), ErrBusy, ErrTooLarge, or the disk's own error.
//   - A record that a crash cut short at the end of the journal was never acknowledged and is cut off. Damage anywhere
//     else is reported with its place and the number of records lost. The damaged bytes stay in their file until the
//     records around them are done with, and all readable records are delivered.
//   - After a kill of the process, a consumer repeats only what it had not returned from; after a power failure, what
//     it did since its last checkpoint. With Consumer.Sync, which makes sure at a checkpoint that the consumer's own
//     effects are on disk, both repeat the latter: otherwise a position that reached the disk before the effects would
//     be wrong where a file system is lost but the machine is not.
//
// Vocabulary: a segment is one file, <first sequence number>-<salt>.journal; a group is the records that were written
// and synced together; done is a consumer's position, durable the position that is sure to survive a power failure. The
// salt is random and part of every checksum, so that a minion cannot place bytes in its load that pass for a record.
package spool
