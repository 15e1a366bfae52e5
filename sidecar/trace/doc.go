// Package trace sends traces of some requests to an OpenTelemetry collector: when a minion's request arrived, how long
// it took to open, check and route it, where it was carried out (this node's master, another node, a journal, the bus),
// and when it was answered.
//
// A Request is the trace of one request on one node: a span for the whole and one for each step, one after the other.
// The spans of a node to which a request is relayed, sign-ins excepted, belong to the same trace: the W3C header
// traceparent is sent along on the peer port, and the receiving node follows the sampling decision of the first one.
// All of it is nil when nothing is traced, and methods of nil do nothing and allocate nothing.
//
// Spans name commands, steps and nodes. They never contain the content of a request, keys, addresses or the ids of
// minions, unless Config.IDs asks for these. The Tracer sends them as OTLP over HTTP in JSON, in batches, from a
// bounded queue: a collector that is slow or away costs spans, which are counted, and nothing else.
//
// OpenTelemetry's own SDK with its exporter for HTTP builds with our modules (1.47.0, measured in November 2026), but
// it would link 58 modules instead of 40, including gRPC, and make saltclusterd 28.1 MB instead of 24.8 MB. This
// package has the part of it that is needed.
package trace
