// Package upstream is the sidecar's client side towards a stock salt-master (its own, on loopback): a pool of
// request connections to the ROUTER on ret_port and one subscription to the PUB on publish_port.
//
// In: raw message bodies (the msgpack envelope, untouched). Out: raw reply bodies and raw publication parts. The
// package knows ZMTP, not Salt: nothing here opens or rewrites a load.
//
// Promises:
//   - one request in flight per connection: the pooled ROUTER of 3008 reads the third part as the payload, so replies
//     cannot be matched by a request number. A connection whose request was given up is drained of its stale reply or
//     closed, never handed to another request before;
//   - bounded connections, a bounded queue with deadlines in which senders take turns, nothing waits forever;
//   - a sender has no more calls under way than PerSender or PerWaiter, those included that were given up and that the
//     master still works on;
//   - nothing is ever sent twice. Retryable tells whether a failed request was certainly never handed to the master;
//   - a master that is connected and does not work (stopped, hung) is noticed, calls to it fail at once, and it is used
//     again with its first sign of life (stall.go); one that is only busy is left in peace;
//   - PING is answered on idle connections too, so that a 3008 master does not cut them after 40 s.
//
// Vocabulary: a call is one Do or Go; a connection is idle, busy (its call waits for the reply) or draining (its
// call was given up); the client is up while a connection's ZMTP handshake has succeeded since the last loss, and the
// master works; it is stalled while it does not.
package upstream
