// Package mmapkeys reads and writes the key store of a salt-master 3008 that is configured with
// `keys.cache_driver: mmap_key` (salt/cache/mmap_key.py over salt/utils/mmap_cache.py), while that master and its
// salt-key use it.
//
// A store is three banks in pki_dir: minion keys with their states, denied keys, and the master's own keys. A bank is
// an open-addressed hash table in a file of fixed size (the index), the values in append-only files (the heap and its
// segments), a list of the slots in use (the roster) and a file for the lock.
//
// Vocabulary is Salt's: index, slot, heap, segment, roster. A listed entry is one that the roster has; `salt-key -L`
// and targets show only these. An entry that is not listed can still be found by its key: that is how the pseudo
// minion of saltclusterd is known to the master without being shown (Change.Hidden).
//
// In: Geometry, on which the master and all other users of the store must agree, because the files do not record it.
// Out: Bank.Read, which returns what is in it, and Bank.Apply, which changes it. Nothing is kept open or mapped between
// calls: the files may be replaced at any time, and a mapping of a file that another process truncates kills this one.
//
// Promises: writers are excluded as Salt excludes them, by flock(2) on the lock file, and no call waits for it longer
// than its context; what a crash leaves is what one of Salt would leave, and the next Apply puts right; a change
// based on an entry that another process has changed since is not made (ErrChanged); entries lost in a power failure
// are distinguished from deleted ones (Content.Holes, Content.Short, Bank.Lost). No content of the files makes a call
// use more memory than the entries it returns, or follow a link.
//
// Readers of Salt map the heap and look whether it has grown four times a second (staleness_check_interval), so a new
// value may look missing to a worker for Settle after Apply.
//
// Limits: a table never grows, for Salt would not notice in time that it was replaced; when it is full, Apply says so
// (ErrFull). Keys are cut to the size of their field; Apply refuses longer ones (ErrTooLong).
package mmapkeys
