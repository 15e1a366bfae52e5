// Package tokens makes an eauth token that one master has issued good on all of them, until it expires or is revoked.
//
// A stock master keeps a token in a file: 3006 and 3007 in cachedir/tokens/<token> (salt/tokens/localfs.py), 3008 in
// cachedir/tokens/<token>.p, wrapped with its expiry (salt/auth/__init__.py over the cache bank "tokens"). Every
// master looks there with each request. This package notices files that come and go (inotify is a hint, a scan is the
// truth), notifies all other members, and writes and removes files in the layout of its own master. It owns no other
// file in that directory; its table lies in the state directory.
//
// Vocabulary:
//
//   - token: the secret itself, and the name of its file. It is never logged, and leaves the node only for members.
//   - fingerprint: SHA-256 of a token, by which tables, digests and logs name it.
//   - live: a token that works. Its data never change: a file that holds something else is damaged.
//   - revoked: a token whose file was removed before its time. That is final, because no token is ever made twice, and
//     kept until no clock takes the token for live any more.
//   - digest: all prints of a table, sent to a peer, which answers with what the sender lacks.
//
// Promises: a revoked token comes back from nowhere: not from a node that was away, not from a backup; a token whose
// directory was lost or replaced, or whose file is damaged, was not revoked, and comes back; files appear whole, with
// mode 0600 and the master's owner; an expired token is neither sent nor taken; memory is bounded by the number of
// tokens.
package tokens
