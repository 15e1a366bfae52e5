// Package upstream is saltclusterd's client of a stock salt-master (its own, on loopback): a pool of request
// connections to the ROUTER on ret_port and one subscription to the PUB on publish_port.
//
// In: raw message bodies (the msgpack envelope, untouched). Out: raw reply bodies and raw publication parts. The
// package knows ZMTP, not Salt: nothing here opens or rewrites a load.
//
// Promises:
//
//   - One request is in flight per connection: the pooled ROUTER of 3008 reads the third part as the payload, so
//     replies cannot be matched by a request number. A connection whose request was given up is drained of its late
//     reply or closed before another request uses it.
//   - Connections are bounded, the queue is bounded and has deadlines, senders take turns in it, and nothing waits
//     forever.
//   - A sender has no more calls under way than PerSender or PerWaiter, including those that were given up and that the
//     master still works on.
//   - Nothing is ever sent twice. Retryable tells whether a failed request was certainly never handed to the master.
//   - A master that is connected but does not work (stopped, hung) is noticed; calls to it fail at once, and it is used
//     again as soon as it responds (stall.go). A master that is only busy is not affected.
//   - PING is answered on idle connections as well, so that a 3008 master does not cut them after 40 s.
//
// Vocabulary: a call is one Do or Go; a connection is idle, busy (its call waits for the reply) or draining (its call
// was given up); the client is up when a connection's ZMTP handshake has succeeded since the last loss and the master
// works; it is stalled while the master does not work.
package upstream
