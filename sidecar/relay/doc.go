// Package relay carries single requests of minions between nodes, on the h2 protocol of the peer port.
//
// In goes the body of a request exactly as the minion sent it, out comes the body of the reply exactly as the other
// node's master gave it: session keys are the same on every node, so neither is opened on the way. The receiving node
// treats a relayed request as it treats one from the network (guard, decryption, token) and never relays it again: a
// peer can hand over a minion's request, it cannot forge one. Sign-ins, which are in clear, have a path of their own;
// nothing else in clear is relayed.
//
// Promises: a reply or an error within the context's deadline; ErrDropped when the other node decided not to answer; an
// error that is Unsent when it did nothing with the request, because its master is gone, say; bodies are bounded by
// MaxBody in both directions, sign-ins by MaxSignIn.
package relay
