// Package guard is the wall in front of Python: it decides which requests from the network are rejected and why, and
// what answer their sender gets.
//
// In: the request as sidecar/saltwire parsed it, the sender's address, the minion's accepted key. Out: nil, or a
// Refusal with a stable reason and the answer for the sender. Each refusal is counted by reason and logged; the log is
// limited per reason and address.
//
// A request first goes through CheckEnvelope. One that is not encrypted then goes through CheckClear or CheckAuth;
// otherwise the caller opens it with the session key and calls CheckLoad. Problems that the caller finds itself (a body
// that does not parse, a key that is not accepted, a ciphertext that does not open) are reported through Malformed and
// Refuse, so that there is one list of reasons.
//
// Promises: no check relies on anything unproven; a stranger's request costs at most one RSA public operation here;
// memory is bounded; logs and reasons contain nothing of a message but the id and the command's name. Every sender that
// may be an honest minion gets the answer "bad load", which makes it sign in again. The answer "rejected" is never
// given, because minions exit on it.
//
// The rules are those of salt/channel/server.py:ReqServerChannel.handle_message, of all versions together: a check that
// only one version has applies to all masters.
package guard
