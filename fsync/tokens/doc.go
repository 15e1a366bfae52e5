// Package tokens replicates eauth tokens: a token that one master has issued is valid on all of them, until it expires
// or is revoked.
//
// A stock master keeps a token in a file: 3006 and 3007 in cachedir/tokens/<token> (salt/tokens/localfs.py), 3008 in
// cachedir/tokens/<token>.p, wrapped with its expiry (salt/auth/__init__.py over the cache bank "tokens"). Every master
// reads that file with each request. This package notices files that are added or removed (by inotify, and by scans
// where inotify missed something), notifies all other members, and writes and removes files in the layout of its own
// master. It owns these files, and its table in the state directory.
//
// Vocabulary:
//
//   - token: the secret itself, and the name of its file. It is never logged, and is sent to members only.
//   - fingerprint: SHA-256 of a token, which names it in tables, digests and logs.
//   - live: a token that works. Its data never change: a file with any other content is damaged.
//   - revoked: a token whose file was removed before it expired. A revocation is final, because no token is ever issued
//     twice, and is kept until the token has expired by every clock.
//   - digest: all fingerprints of a table, sent to a peer, which answers with what the sender lacks.
//
// Promises: a revoked token does not come back, neither from a node that was away nor from a backup; a token whose
// directory was lost or replaced, or whose file is damaged, does not count as revoked, and comes back; files appear
// whole, with mode 0600 and the master's owner; an expired token is neither sent nor accepted; memory is bounded by the
// number of tokens.
package tokens
