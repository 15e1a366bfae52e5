// Package saltlog writes into saltclusterd's log what a stock master writes into its own about requests that
// saltclusterd carries out in its place, in the same words: rules of monitoring systems and of fail2ban go by them.
//
// In: a sign-in or a return that was taken, one that was refused, a second return of a minion for one job that says
// something else than the first. Out: log lines, and the minions of which the last happened lately, for status.
//
// What a stock master says at the level info is said only while the local master's log has that level: a line for each
// return is much. Its warnings are always said, one in a minute for each minion. A leaf; safe for concurrent use.
package saltlog
