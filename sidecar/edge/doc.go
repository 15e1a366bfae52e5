// Package edge serves the connections of minions: the 4506 side (ReqEdge, with zeromq a
// ROUTER to their REQ and DEALER sockets) and the 4505 side (PubEdge, a PUB to
// their SUB sockets). Above it are only whole message bodies; below it are
// netconn, which accepts, reads, cuts and hands over connections of any
// transport, budget, which bounds what they cost, front, which terminates TLS,
// and the transports, zmtp, tcpframe and wsframe.
//
// In: TCP connections from any client. Out: Requests to a ReqHandler, which may
// answer later and from anywhere; Publications to every subscriber.
//
// # How a connection is served
//
// One goroutine per connection reads with a pooled buffer which it holds only
// while there is something to read; incomplete input stays in the
// connection's decoder. Output is written at once, without blocking, by the
// goroutine that produces it. Only while a socket is full does the connection
// have a second goroutine, which waits for room. So an idle connection costs a
// parked goroutine and a few hundred bytes, and its whole state is in one
// struct that can be written down and handed to another process.
//
// # Transports
//
// The first byte of a connection, behind a load balancer's header, shows its
// transport (openings). From then on a reqWire or subWire turns its bytes into
// requests, subscriptions and names, and puts a head in front of replies. An
// encoding defines the form of a publication. All else is the same for all.
//
// With Salt's tcp transport requests are pipelined and answered in any order,
// and a subscriber gets everything until Identify knows its minion: then it
// subscribes to Salt's broadcast and to the minion's own topic (Targeted).
// With its ws transport a subscriber has no name and gets everything, and a
// connection to 4506 is closed a while after its request was answered.
//
// A connection that begins with TLS goes through package front, which hands
// back the decrypted bytes.
//
// # How a publication travels
//
// It is encoded once for each transport in use, into the append-only feed of
// its generation and transport. A
// subscriber is a cursor into that feed. A few shard workers walk their
// subscribers and write to each, with one system call, everything it lacks.
// So bursts are sent in batches, and memory does not grow with
// the number of subscribers. A subscriber whose socket is full drops out of
// the walk and continues at its own pace; one that falls further behind than
// PubConfig.QueueMessages or QueueBytes is cut. The feed counts no
// references: parts that no cursor points to any more are garbage.
//
// # Promises
//
//   - a reply goes to the connection its request came from and nowhere else;
//   - replies and publications are never torn, repeated or reordered, with one
//     exception: with Salt's tcp transport a publication for some minions may
//     reach a subscriber late if its socket is full;
//   - no peer delays another one: a peer that is slow, silent or hostile
//     costs memory up to the configured limits, and is cut with a netconn.Reason
//     that is counted and (rate-limited) logged;
//   - Publish waits for nothing but the edge's own workers.
//
// # Vocabulary
//
//	envelope    the frames of a request up to and including the first empty
//	            one; the reply begins with the same
//	cut         to end a connection from our side, unsent output included
//	generation  the span between two Rotate calls; subscribers of different
//	            generations get differently sealed bodies
//	feed        the encoded publications of one generation and transport
//	unfiltered  a subscriber to the empty topic: gets bare bodies. Others
//	            (Salt's zmq_filtering) get topic and body.
//
// Locks are taken in the order shard, connection (Conn.Mu), feed (PubEdge.mu).
package edge
