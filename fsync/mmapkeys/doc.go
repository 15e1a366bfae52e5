// Package mmapkeys reads and writes the key store of a salt-master 3008 that is configured with `keys.cache_driver:
// mmap_key` (salt/cache/mmap_key.py over salt/utils/mmap_cache.py), while that master and its salt-key use it.
//
// A store is three banks in pki_dir: minion keys with their states, denied keys, and the master's own keys. A bank is
// an open-addressed hash table in a file of fixed size (the index), the values in append-only files (the heap and its
// segments), a list of the slots in use (the roster), and a lock file.
//
// Vocabulary is Salt's: index, slot, heap, segment, roster. A listed entry is in the roster; `salt-key -L` and targets
// show only these. An entry that is not listed can still be found by its key: this is how the master knows the pseudo
// minion of saltclusterd without showing it (Change.Hidden).
//
// In: Geometry, on which the master and all other users of the store must agree, because the files do not record it.
// Out: the content (Bank.Read) and changes of it (Bank.Apply). Nothing is kept open or mapped between calls: the files
// may be replaced at any time, and a process that has a file mapped is killed when another process truncates the file.
//
// Promises: writers are excluded as Salt excludes them, by flock(2) on the lock file, and no call waits for the lock
// longer than its context; a crash leaves what a crash of Salt would leave, and the next Apply repairs it; a change is
// not made if another process has changed the entry on which it is based (ErrChanged); entries lost in a power failure
// are distinguished from deleted ones (Content.Holes, Content.Short, Bank.Lost). Whatever the files contain, a call
// uses no more memory than the entries it returns, and follows no link.
//
// Readers in Salt map the heap and check four times a second whether it has grown (staleness_check_interval). Therefore
// a worker may not find a new value for Settle after Apply.
//
// Limits: a table never grows, because Salt would not notice in time that it was replaced; when it is full, Apply fails
// (ErrFull). Salt cuts keys to the size of their field; Apply refuses longer ones (ErrTooLong).
package mmapkeys
