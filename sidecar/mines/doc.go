// Package mines answers the requests of minions about mines (_mine, _mine_delete, _mine_flush, _mine_get) without the
// master's Python, which needs 1.5 to 2.6 ms of CPU for each.
//
// In: decrypted loads, the master's effective options, and the mines as the master keeps them in its cachedir:
// minions/<id>/mine.p with 3006 and 3007, mine/<id>.p with 3008. Out: the answer that a stock master gives, and the
// file that it writes, byte for byte. fsync/datacache (Store.Change) writes the file and sends it to the other nodes.
// The model is salt/daemons/masterapi.py:RemoteFuncs, salt/utils/minions.py:CkMinions, salt/cache/localfs.py and
// salt/utils/mine.py, of 3006, 3007 and 3008.
//
// Permission to read another minion's mine is decided as in Salt: by the master's mine_get, and by allow_tgt of the
// entry. The targets of both may be globs and lists of ids. Requests with targets of other kinds (grains, pillars and
// more) are left to the master. So are loads that make its code fail (_mine with clear does in all three versions),
// files whose content is not a mine, and with 3008 names that may mean a resource that a minion manages.
//
// Promises: an error of Answer means that nothing was changed or answered: the request can go to the master. An
// answered write is in the file, whole, and every other node that could be reached in time can read it; it survives a
// kill but not a power failure, because the answer does not wait for the disk, as with a stock master. A _mine_get
// costs memory for its own size, its answer and one mine, and time for its own size and that of the mines it names;
// only a few are answered at a time. It is left to the master if it has more than 1,000 functions or 20,000 ids, meets
// a mine or an entry of more than 4 MiB or 20,000 entries, or meets more than 256 different allow_tgt. So is every load
// of more than 2 MiB, before it is parsed.
package mines
