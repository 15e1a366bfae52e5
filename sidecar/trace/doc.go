// Package trace sends traces of some requests to an OpenTelemetry collector: when a minion's request came, how long
// it took to be opened, judged by the wall and routed, where it was carried out (this node's master, another node, a
// journal, the bus), and when it was answered.
//
// A Request is the trace of one request on one node: a span for the whole and one for each step, which follow each
// other. What another node does with a relayed request, sign-ins excepted, are spans of the same trace: the W3C header
// traceparent goes along on the peer port, and the node that gets it follows the decision of the one that began. All of
// it is nil when nothing is to be traced, and methods of nil do nothing and allocate nothing.
//
// Spans name commands, steps and nodes. They never hold what a request says, keys, addresses or the ids of minions,
// unless Config.IDs asks for these. The Tracer sends them as OTLP over HTTP in JSON, in batches, from a queue with a
// bound: a collector that is slow or away costs spans, which are counted, and nothing else.
//
// OpenTelemetry's own SDK with its exporter for HTTP builds with our modules (1.47.0, measured in November 2026), and
// would make 58 modules of the 40 that are linked, gRPC among them, and 28.1 MB of the 24.8 MB of saltclusterd. What is
// needed of it is here.
package trace
