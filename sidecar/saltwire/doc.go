// Package saltwire reads and writes Salt's msgpack messages: request envelopes, sign-in requests and replies,
// publications and event-bus entries.
//
// It reads lazily. A parse function walks the bytes once, checks every length against the bytes that are there, picks
// what routing and the guard need and leaves the rest as slices of the input. A forwarded message is never encoded
// again: signatures are computed over the bytes a minion or master sent, so only those very bytes verify.
//
// Vocabulary, as Salt's: an envelope is the outer map {enc, load, version, …}; a load is its content (a map if it is
// not encrypted, or a ciphertext whose plaintext is a map); a private reply is the answer to _pillar; raw is msgpack's
// old string family (fixstr, str16, str32), the only one Salt puts on the network (payload.dumps, use_bin_type=False).
//
// Promises: no function panics on any input or recurses deeper than its stated bound; byte slices in results alias the
// input, strings are copies; every refusal is a *Refused whose Reason is one of the Reason constants and fit for a
// metric label. The package opens no sockets, holds no state and knows no keys (sidecar/saltcrypt does).
package saltwire
