// Package budget bounds what connections cost before the sender of a request is known, and how much one of them may
// harm others: Memory for requests, Unread for answers, Places for requests without an answer, Throttle for senders
// whose requests are refused.
//
// In: what the engines of package edge read. Out: errors that cut a connection, and waits. It reads and writes nothing
// itself, and starts no goroutine.
//
// Promises: every charge is given back once; an incomplete request gives way before a complete one, a stranger's before
// a minion's; the connection with the most unread data gives way before those with little.
package budget
