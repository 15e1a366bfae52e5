// Package spool is a durable journal: what was appended is on disk when Append returns, and reaches every consumer at
// least once and in order, whatever is killed or loses power when. saltclusterd keeps the returns of minions in it
// between the acknowledgement and the master's job cache.
//
// In: records (a load and the facts of its envelope) from any number of goroutines. Out: batches to consumers, each
// with a cursor of its own, so that one which waits (for the master's event bus) does not hold up another (which
// writes files).
//
// Promises:
//   - One fsync serves all appends that wait at that time. An append that failed was not acknowledged, and says why:
//     ErrFull (the journal has its configured size), ErrBusy, ErrTooLarge, or the disk's own error.
//   - A record that was cut short at the end of the journal by a crash was never acknowledged and is cut off. Damage
//     anywhere else is reported with its place and the number of records lost, the bytes stay in their file until the
//     records around them are done with, and what can be read is delivered.
//   - A kill of the process repeats what a consumer had not returned from, no more; a power loss what it did after its
//     last checkpoint. With Consumer.Sync, which makes sure by then that its own effects are on disk, both repeat the
//     latter: a position that the disk has before the effects would be believed where a file system is lost and the
//     machine is not.
//
// Vocabulary: a segment is one file, <first sequence number>-<salt>.journal; a group is what was written and synced
// together; done is how far a consumer came, durable how far that is sure to survive a power loss. The salt is random
// and part of every checksum, so that a minion cannot place bytes in its load that pass for a record.
package spool
