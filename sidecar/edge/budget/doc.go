// Package budget bounds what connections cost before it is certain who has sent a request, and by how much one may harm
// others: Memory for requests, Unread for answers, Places for requests without an answer, Throttle for those whose
// requests are refused.
//
// In: what the engines of package edge read. Out: errors that cut a connection, and waits. It reads and writes nothing
// itself, and starts no goroutine.
//
// Promises: what is charged is given back once; an incomplete request gives way before a complete one, a stranger's
// before a minion's; who leaves most unread gives way before those who leave little.
package budget
