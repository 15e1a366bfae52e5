// Package haproxy knows how to configure HAProxy in front of a cluster. It writes a configuration (Write), and it reads
// an existing one and finds what is wrong with it (Parse, Judge).
//
// In: properties of the cluster (Facts), the text of a configuration. Out: the text of a configuration; Findings, each
// with its line, what it means for minions, and what to write instead.
//
// Promises: what Write makes passes `haproxy -c` and Judge (tests check both). Parse takes any text, bounded in size,
// and ignores directives that do not matter here. Nothing here opens a file or a socket.
//
// Vocabulary: a proxy is a listen, frontend or backend section; a side is the one of Salt's two ports that a proxy
// carries.
package haproxy
