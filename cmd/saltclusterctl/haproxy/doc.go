// Package haproxy knows how HAProxy has to be configured in front of a
// cluster: it writes such a file (Write), and it reads an existing one and says
// what is wrong with it (Parse, Judge).
//
// In: what the cluster is like (Facts), the text of a configuration. Out: the
// text of a configuration; Findings, each with its line, why it matters to
// minions and what to write instead.
//
// Promises: what Write makes passes `haproxy -c` and Judge (tests check both);
// Parse takes any text, bounded in size, and understands no more than it must:
// what it does not know it leaves alone; nothing here opens a file or a socket.
//
// Vocabulary: a proxy is a listen, frontend or backend section; a side is the
// one of Salt's two ports that a proxy carries.
package haproxy
