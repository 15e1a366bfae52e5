// Package play is a minion that is played: it says on the wire what a stock minion says (salt/crypt.py, salt/minion.py,
// salt/channel/client.py) and tells its owner what it saw, which a stock minion does not: every publication that it
// could open, every return and when it was told that it is safe.
//
// A Minion has a key pair and an id. SignIn, Request and Return are single acts at an address; Serve is its life:
// signed in, subscribed, answering the job "labmod.count NUMBER" with the number, signing in again when a publication
// does not open, and connecting again when a connection ends. It is stricter than a stock minion in one thing: it does
// not forget a job it has already run, so its owner hears of each time.
//
// In: a lab.Host to connect from. Out: calls of Observer, from several goroutines. All waiting is bounded by the
// context and by the time-outs that stock minions have.
package play
