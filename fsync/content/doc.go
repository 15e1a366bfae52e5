// Package content gets content by its hash from the other members, and gives them what this one has: chunks of files
// and objects of trees (package tree).
//
// In: hashes, the members to ask (Peers), what this member has (Source), and requests of peers, of which nothing is
// trusted. Out: content whose hash was verified, and answers.
//
// Promises: what has arrived when a connection breaks is not fetched again; a peer that sends something else than what
// it was asked for, or nothing for Config.Stall, is left; requests, frames, answers and the number of answers at a time
// are bounded, so that memory is.
package content
