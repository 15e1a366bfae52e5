// Package hlc is the hybrid logical clock that gives publications their serial numbers, and the cluster's time, which
// the clock follows.
//
// A Clock owns one number: the last timestamp handed out or observed. A timestamp is a time in milliseconds since 1970
// in the upper 48 bits and a counter in the lower 16, so it is a positive int64 that Salt's msgpack and Python carry
// unchanged.
//
// Promises: Now never returns a value twice and never goes backwards, whatever any wall clock does; after Observe(t) it
// returns only values above t; after a restart it stays above everything handed out before, because Reserve wrote a
// ceiling to disk first. A minion drops a publication whose serial is not above the last one it saw (Salt's replay
// guard, salt/crypt.py Crypticle.loads), and forgets that one only when its keys change. Therefore a serial from the
// future is not refused: all clocks of the cluster follow it, and a minion that has seen it accepts the publications of
// every node. Serials need not be near the time of day; the age of a publication is judged by other means.
//
// No clock relies on the wall clock of its host alone. A Reference is the time of the cluster: the lower median of the
// wall clocks of its nodes, so that a single wrong one has no effect. Judge names the nodes that are off.
package hlc
