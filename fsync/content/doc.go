// Package content fetches content by its hash from the other members, and serves what this member has: chunks of files,
// and objects of trees (package tree).
//
// In: hashes, the members to ask (Peers), the content of this member (Source), and requests of peers, which are not
// trusted. Out: content whose hash was verified, and answers.
//
// Promises: content that arrived before a connection broke is not fetched again; a peer that sends anything other than
// what was asked for, or nothing for Config.Stall, is abandoned; the sizes of requests, frames and answers and the
// number of answers at a time are bounded, and so is memory.
package content
