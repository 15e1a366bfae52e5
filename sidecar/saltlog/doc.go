// Package saltlog writes to saltclusterd's log what a stock master writes to its own about requests that saltclusterd
// now carries out. The wording is the same, because rules of monitoring systems and of fail2ban depend on it.
//
// In: sign-ins and returns that were accepted or refused, and second returns of a minion for one job that differ from
// the first. Out: log lines, and for status the minions with recent second returns.
//
// Messages that a stock master logs at level info are logged only while the local master's log has that level, because
// a line for each return is a lot. Its warnings are always logged, at most one a minute for each minion. A leaf; safe
// for concurrent use.
package saltlog
