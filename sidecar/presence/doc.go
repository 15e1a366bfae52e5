// Package presence says which minions are alive, from what the nodes of a cluster see of them. It is pure: its callers
// collect the data.
//
// Salt's own presence (salt/utils/minions.py CkMinions.connected_ids, the same in 3006, 3007 and 3008) asks the kernel
// of one host which addresses are connected to the publish port, and counts every minion as present that has such an
// address among its grains. Behind a load balancer these are the load balancer's addresses, and the connections of
// other nodes are missing.
//
// The publish protocol does not say which minion a connection belongs to. A cluster knows:
//
//   - the connections to 4505 of all nodes, with the address they come from. Each is known to be alive: a client that
//     does not answer a PING for heartbeat_timeout is cut, and one that exits loses its connection;
//   - for some connections the minion (zmq_filtering): they subscribe to the hash of its id;
//   - when each minion sent its latest request, and from which address. A request proves the minion's key, a connection
//     proves nothing.
//
// Vocabulary: a minion *claims* a connection from the address of its latest request. A connection that no minion claims
// is *unclaimed*; a young one is younger than Window. Window is a little more than the time within which a minion with
// Salt's defaults sends something (mine_interval, an hour).
//
// An accepted minion is alive when
//
//  1. a connection subscribes to the hash of its id; or
//  2. there are at least as many connections from its address as minions that claim one: the usual case where minions
//     have addresses of their own (they connect directly, or the load balancer sends their address: proxy_protocol); or
//  3. there are some, but fewer (minions behind one address, or a load balancer that does not send addresses). If as
//     many minions as there are connections have had contact since the number of connections fell, it must be one of
//     them: any job that all of them answer decides it. Until then it must have had contact within Window, or be one of
//     those with the latest contact; or
//  4. there is none from its address, but it had contact within Window, and there are young unclaimed connections, one
//     of which may be its own: this covers as many minions as there are such connections, those with the latest
//     contact.
//
// In doubt (3 and 4) a minion counts as alive, because reactors act on lost minions. So a minion with an address of its
// own leaves the list with its connection; one behind a shared address leaves it when all others have had contact, or
// within Window. A client that can reach 4505 can make a minion look alive; no client can make one look dead. Presence
// grants nothing.
//
// A Tracker derives from this which minions are new and which are lost. A minion is lost when it was not alive for
// Grace. A minion whose node was killed or drained, and which is moving to another one, is neither.
package presence
