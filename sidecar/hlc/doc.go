// Package hlc is the hybrid logical clock from which publications get their serial numbers.
//
// It owns one number: the last timestamp handed out or heard of. A timestamp is the wall clock in milliseconds
// since 1970 in the upper 48 bits and a counter in the lower 16, so it is a positive int64 that Salt's msgpack and
// Python carry unchanged.
//
// Promises: Now never returns a value twice and never goes backwards, whatever the wall clock does; after Observe(t)
// it returns only values above t; after a restart it stays above everything handed out before, because Reserve wrote a
// ceiling to disk first. A minion drops a publication whose serial is not above the last one it saw (Salt's replay
// guard, salt/crypt.py Crypticle.loads), which is why a step back of the clock would silence a whole fleet.
package hlc
