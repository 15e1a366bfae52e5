// Package peerrpc carries calls between the members of a cluster over the peer port.
//
// An Endpoint describes one call: its path, the types of question and answer, and their largest sizes. A Mux serves
// endpoints and other handlers, limits how many requests of one member are worked on at a time, and bounds the time
// that a body may take. A Client calls.
//
// In: an http.Client whose connections are authenticated by package gossip/peer, and the handlers of the capabilities.
// Out: answers, or errors that name the node and the path.
//
// Promises: a member that sends many requests, or sends them slowly, keeps places from no other member; no body is read
// beyond its limit. Questions and answers are JSON; unknown fields are ignored and missing ones are zero, so members of
// different versions understand each other.
package peerrpc
