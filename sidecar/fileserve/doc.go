// Package fileserve answers what minions ask the file server of a stock salt-master for the roots backend: chunks of
// files, hashes, lists of files, directories and links, environments. Neither Python nor a running master is needed.
//
// In: the decrypted load of a request and the master's effective options. Out: the msgpack that a stock master would
// seal for the minion, or ErrForward: this request is the master's own.
//
// The model is salt/fileserver/__init__.py:Fileserver, salt/fileserver/roots.py, salt/utils/verify.py:clean_path and
// salt/master.py:AESFuncs. In 3006, 3007 and 3008 they differ only in what they log (and 3008 can run them in threads,
// master_async_mworker, with the same results), so there is one model for all versions:
//
//   - find_file: absolute paths and "../" are not found; an environment that is not configured is __env__'s if that
//     is; the roots in their order, the first regular file that is not ignored. Ignore patterns apply to the whole
//     path here, but to the path below the root in lists. With fileserver_followsymlinks links lead anywhere;
//     without, their end must be inside of the same root.
//   - lists: os.walk of each root, together; kept for fileserver_list_cache_time (20 s) in
//     cachedir/file_lists/roots/<env>.p. These files are read and written here, too: minions and the master's own
//     Python see the same list, and removing the files (by salt-run fileserver.clear_file_list_cache, or a change of
//     the roots) takes effect at once.
//   - an exception in Python is answered with "", a file that is not found with the empty values of each command.
//
// A request is forwarded unless it has the form that minions send and its answer is certain. Forwarded are therefore:
//
//   - requests for files that another backend may have; "?" queries and "|" escapes in paths; wrong types; names that
//     are not UTF-8 (Python fails to pack them);
//   - files that resolve to a place that looks different to this process than to the master (Settings.Hidden), that
//     cannot be read, or that are not as long as their size says (/proc); disks that do not answer;
//   - hashes that a stock master cannot store, because the name would be too long;
//   - chunks of files in roots written with ".." behind a link, where a stock master finds one file and serves another.
//
// Native gives the reason if a configuration rules out all answers.
//
// All intended differences:
//
//   - Hashes are kept by device, inode, size, mtime and ctime in memory; a stock master keeps them by mtime in
//     cachedir/roots/hash, and gives an old hash when a file changed while its mtime did not.
//   - A transfer continues with the file it began with even if another one has replaced it since (a change of the
//     roots is made of renames); a stock master sends the rest of the new file after the beginning of the old one. A
//     file that is changed in place is sent as a stock master does. The memory of transfers ends with the process.
//   - Compressed chunks (gzip) are other bytes that unpack to the same.
//   - _file_envs is sorted; a stock master has the order of a Python set. The times of access of files may differ.
//   - A request that leaves a backend out ("-roots") does so for itself; a worker of a stock master has no files after
//     it.
//   - What saltclusterd keeps for itself in a root (names that begin with durable.Prefix) is not there, also when the
//     master's own lists have it.
//   - An environment for __env__ that is empty or has "." or ".." in it, or begins with a slash, has no files.
//
// Promises: nothing outside of what a stock master would serve is read; without fileserver_followsymlinks a file is
// opened by a walk that cannot leave its root, even if directories are renamed at the same time. Minions that ask
// together cost one reading and one hashing. Memory is bounded (Limits), and so are the open files and the threads that
// wait for a disk: when it does not answer, the request is forwarded. Content that was read so soon after a change that
// the file system's times cannot show another one is not kept.
//
// Vocabulary is Salt's: saltenv, path, loc, chunk, rel. A version is one content of a file, by identity. A pin keeps a
// version readable for the transfers that began with it.
package fileserve
