// Package datacache replicates what one master has cached about a minion to all masters: grains and pillar, which
// targeting by -G, -I and -C reads, and the mine, which minions read with mine.get.
//
// A stock master writes these files when it carries out _pillar (salt/master.py AESFuncs._pillar), or _mine,
// _mine_delete and _mine_flush (salt/daemons/masterapi.py RemoteFuncs), and only into its own cachedir: 3006 and 3007
// into minions/<id>/data.p and mine.p, 3008 into grains/<id>.p, pillar/<id>[:<pillarenv>].p and mine/<id>.p. This
// package reads the files after such a request and in scans, sends new content to all other members, and writes what
// they send in the layout of its own master. It owns these files and its tables in the state directory, and no others.
// It also changes mines itself when sidecar/mines answers a request without the master (Change).
//
// Vocabulary:
//
//   - kind: what a Store replicates, either grains with pillars, or mines. Each kind has a Store of its own, so they do
//     not race.
//   - data: the content of one kind for one minion. The msgpack bytes are carried verbatim, including the minions that
//     may read a mine (allow_tgt); only the wrapping depends on the layout.
//   - news: data on disk that differ from the table. A mine that is sent again unchanged is news as well: it has to
//     come back on a master on which it was cleared since the last scan.
//   - stamp: when news were found, on the cluster's hybrid clock. Later stamps win. Data found at the start have the
//     time of their file as stamp. Files written here get the time of their stamp, so losing a table does no harm.
//   - table: stamp and hash of what is on disk, for each minion.
//   - life: the time from the moment an id gets a key until that key is deleted. Data of an earlier life do not count,
//     even if the key is the same.
//   - gone: marks a mine that was flushed. The table keeps the mark, so that the mine does not come back from a node
//     that was away.
//   - part: one piece of a record with more pillars than a 3006 or 3007 master has files for, as it is stored on such a
//     node.
//   - digest: the ids and stamps of a table, sent to a peer, which answers with the data that have later stamps.
//
// Promises: only data of minions with an accepted key are accepted, gathered under that very key; received data are
// never announced as news; a file appears whole or not at all; a peer that was away gets what it lacks. Memory is
// bounded by the number of ids, not by the size of data: at most two files above 64 KiB are read at a time, and such
// content is held only in one body for each peer, in four bodies that peers send, and in one change of a large mine.
// Deleting a key deletes the minion's data on every node, unless the master has preserve_minion_cache. When Spread
// returns in time, all reachable members have the data.
//
// All writes of one minion's mine go to one node (sidecar/router), which reads, changes and writes the mine, itself or
// through its master: two nodes that did so at the same time would lose entries. Changes of one mine wait for each
// other as long as their requests last. Minions share 64 locks, so some also wait for another minion's changes. If the
// master writes the mine during a change, the change starts over.
//
// Limits:
//
//   - Grains and pillars that an operator clears on one master (salt-run cache.clear_all) come back from the others. A
//     mine that is cleared is cleared everywhere, unless its directory is removed as well. A mine that the master's own
//     code removes comes back if data of it that were sent before arrive between the removal and Spread.
//   - A record without a pillar does not remove the pillar a master has. A pillar that 3006 or 3007 compiled for a
//     pillarenv cannot be recognised as such.
//   - A 3008 master may answer minions from its cached pillars (pillar_cache: True), and a pillar from another master
//     may be older than what was asked for. The caller then has it rendered again (Config.PillarComes).
//   - resource_grains of 3008 are not replicated: minions register their resources with every 3008 master.
//   - If this process is killed within the microseconds in which it has a file of the master under another name, and
//     the master wrote that file just before, this write is lost: the next start removes files with such names. On a
//     file system that cannot exchange files, a write of the master in the same microseconds is lost as well.
package datacache
