// Package relay carries single requests of minions between nodes, on the h2 protocol of the peer port.
//
// In: the body of a request exactly as the minion sent it. Out: the body of the reply exactly as the other node's
// master gave it. Session keys are the same on every node, so neither is opened on the way. The receiving node treats a
// relayed request like one from the network (guard, decryption, token) and never relays it again: a peer can hand over
// a minion's request, but cannot forge one. Sign-ins, which are not encrypted, have a path of their own; no other
// unencrypted request is relayed.
//
// Promises: a reply or an error within the context's deadline; ErrDropped when the other node decided not to answer; an
// error that is Unsent when it did nothing with the request, for example because its master is gone; bodies are bounded
// by MaxBody in both directions, sign-ins by MaxSignIn.
package relay
