// Package guard is the wall in front of Python: it decides which requests from the network are rejected, why, and
// what their sender gets as an answer.
//
// In: what sidecar/saltwire parsed, the sender's address, the minion's accepted key. Out: nil, or a Refusal with a
// stable reason and the answer for the sender. Each refusal is counted by reason and logged, the log limited per reason
// and address.
//
// The order for a request is CheckEnvelope; then, in clear, CheckClear or CheckAuth; sealed, the caller opens it with
// the session key and calls CheckLoad. What the caller finds itself (a body that does not parse, a key that is not
// accepted, a ciphertext that does not open) it reports through Malformed and Refuse, so that there is one list of
// reasons.
//
// Promises: no check trusts anything it was not given proof of; nothing a stranger sends costs more than one RSA public
// operation here; memory is bounded; logs and reasons contain nothing of a message but the id and the command's name.
// The answer to everything that might be an honest minion is "bad load", which makes it sign in again; nothing here
// ever answers "rejected", for minions exit on that.
//
// The rules are those of salt/channel/server.py:ReqServerChannel.handle_message, of every version at once: where one
// version has a check that another lacks, all masters get it.
package guard
