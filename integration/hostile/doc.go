// Package hostile plays a minion whose key is accepted and who means no good, against a live cluster, and judges what
// came of it.
//
// # Vocabulary
//
// A Request is one thing the minion says. It follows from the seed and its number alone, so that it can be said again;
// only what cryptography demands differs (nonce, time, seal). It has a shape: a command of any stock master, or none,
// with the fields that masters of the three versions look at (shapes.go). Values are what a field of its kind usually
// holds, what belongs to others, and what masters do not expect (values.go); a few things are wrong with each request:
// values, fields that lack, come twice or have another type (request.go), the envelope (envelope.go), or the frames
// that carry it (carriage.go).
//
// Every value that can hold a text holds a mark, which tells the seed and the number of the request. So whatever is
// found somewhere is known to come from here, and from which request.
//
// An invariant is what must hold whatever a minion says:
//
//	tags      no event on a master's bus under a tag that masters or clusters tell each other things with
//	names     no event in the name of another minion
//	returns   no return stored, and none told, for another minion
//	jobs      no return stored for a job that was not published
//	files     nothing from here in a file outside what belongs to the minion; elsewhere nothing but what masters write
//	keys      no key is accepted, rejected or deleted that was not before
//	secrets   no answer holds what stands outside the roots: keys, configuration
//	processes saltclusterd and salt-master are the processes they were
//	memory    saltclusterd does not grow beyond a bound
//	minions   the other minions answer test.ping from every master, all the time
//
// In: a cluster of the lab that works. Out: a Report. What an attack leaves behind that it may (keys that wait to be
// accepted, the minion's own data) is removed at the end, the minion's own key last.
//
// # Promises
//
// Bounded: requests per second, connections, bytes, time. Nothing leaves the lab: commands that would do something if
// they got through make a file in the lab's directory, which is looked for. This does not teach how to harm a
// master: requests are made of what stock minions say and of chance.
package hostile
