// Package mines answers what minions send about mines (_mine, _mine_delete, _mine_flush, _mine_get) without the
// master's Python, which needs 1.5 to 2.6 ms of CPU for each.
//
// In: decrypted loads, the master's effective options, and the mines as the master keeps them in its cachedir:
// minions/<id>/mine.p with 3006 and 3007, mine/<id>.p with 3008. Out: the answer that a stock master gives, and the
// file that it writes, byte for byte; how it gets there and to the other nodes is fsync/datacache's (Store.Change). The
// model is salt/daemons/masterapi.py:RemoteFuncs, salt/utils/minions.py:CkMinions, salt/cache/localfs.py and
// salt/utils/mine.py, of 3006, 3007 and 3008.
//
// Permission to read another minion's mine is decided as there: by the master's mine_get, and by allow_tgt of the
// entry. Targets of both are globs and lists of ids. All others go by grains, pillars or more, and are left to the
// master, as are every load on which its code would fail (_mine with clear does in all three versions), any file whose
// content is not a mine, and with 3008 what might mean a resource that a minion manages.
//
// Promises: an error of Answer means that nothing was changed or answered: the request can go to the master. An
// answered write is in the file, whole, and where every other node that could be reached in time reads it; it survives
// a kill but not a power loss, because the answer does not wait for the disk, as with a stock master. A _mine_get costs
// memory for its own size, its answer and one mine, and time for its own size and that of the mines it names; few are
// answered at a time. One with more than 1,000 functions or 20,000 ids, or that comes upon a mine or an entry of more
// than 4 MiB or 20,000 entries, or upon more than 256 different allow_tgt, is left to the master, as is every load of
// more than 2 MiB; what is too long is not taken apart before.
package mines
