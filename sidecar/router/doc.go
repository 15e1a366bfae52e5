// Package router decides where a minion's request goes: to the local master, to another node, to all of them, or
// nowhere because the answer is known.
//
// In: what was read from the load (saltwire.Peek) and a View of the nodes that may take requests. Out: a Decision.
// Decide is pure, and so are Start and Next, which determine a node's next step with a request from the decision and
// the outcome of the previous step. The caller carries the steps out.
//
// Vocabulary:
//
//   - A command is one entry of the list a stock master exposes (salt/master.py:ClearFuncs.expose_methods and
//     AESFuncs.expose_methods, plus _auth, which channel/server.py intercepts). Commands in commands.go is the one
//     table of them; a test compares it with every installed Salt.
//   - The publisher of a jid is the node whose master published the job. It is known from the master_id that minions
//     echo, or else from the Jobs table.
//   - A node is usable when it is alive and its master answers.
//   - A return is kept (Keep) for a publisher that is a member but not alive. Once the publisher has left the cluster,
//     the ring's owner of the jid takes its place.
//
// Promises: a return reaches the publisher while it is a member, and otherwise the one node that all others would
// choose as well (the ring's owner of the jid); an event of a minion reaches one node only, or the nodes that
// EventRules name: a list whose events have different destinations is split (Split), so that each event reaches its own
// once; decisions never rely on unauthenticated input, because the caller has authenticated the request before.
package router
