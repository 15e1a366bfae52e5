// Package datacache gives every master of the cluster what one of them has cached of a minion: grains and pillar, which
// targeting by -G, -I and -C reads, and the mine, which minions ask for by mine.get.
//
// A stock master writes them when it carries out _pillar (salt/master.py AESFuncs._pillar) or _mine, _mine_delete and
// _mine_flush (salt/daemons/masterapi.py RemoteFuncs), into its own cachedir only: 3006 and 3007 into
// minions/<id>/data.p and mine.p, 3008 into grains/<id>.p, pillar/<id>[:<pillarenv>].p and mine/<id>.p. This package
// reads those files after such a request and in scans, sends what is new to all other members, and writes what they
// send in the layout of its own master. It owns no other file than those, and its tables in the state directory. Mines
// it also changes itself, when sidecar/mines answers such a request without the master (Change).
//
// Vocabulary:
//
//   - kind: what a Store carries, grains with pillars or mines. Each has a Store, so that they do not race.
//   - data: what there is of one kind of one minion. The msgpack bytes are carried verbatim, including the minions
//     that may read a mine (allow_tgt); only the wrapping differs by layout.
//   - news: data on disk that are not those the table knows. A mine that is sent again as it was is news, too: on a
//     master on which it was cleared since the last scan it has to be again.
//   - stamp: when news were found, on the cluster's hybrid clock. Later stamps win. Data found at the start bear the
//     time of their file; files written here get the time of their stamp, so that a lost table does no harm.
//   - table: stamp and hash, per minion, of what is on disk.
//   - life: of an id, from when it has got a key until that is deleted. Data of an earlier life do not count as data,
//     whatever the key.
//   - gone: of a mine that was flushed. The table keeps it, so that it does not come back from a node that was away.
//   - part: a record with more pillars than a 3006 or 3007 master has a place for, as such a node holds it.
//   - digest: a table's ids and stamps, sent to a peer, which answers with the data that have later stamps.
//
// Promises: data are taken for minions with an accepted key only, gathered under that very key; what was received is
// never announced as news; a file appears whole or not at all; a peer that was away gets what it lacks; memory is
// bounded by ids, not by data: files above 64 KiB are read by two at a time, and held beyond that in one body for each
// peer, in four that peers send and in a change of a large mine, of which there is one; a deleted key takes the
// minion's data with it on every node, unless the master has preserve_minion_cache. When Spread returns in time, the
// members that can be reached have what it was called for.
//
// All writes of one minion's mine go to one node (sidecar/router), which reads, changes and writes it, itself or by its
// master: two that did so at once would lose entries. Changes of one mine wait for each other as long as their requests
// last; minions share 64 turns, so some also wait for another minion's changes. When a master writes the mine during a
// change, the change starts over.
//
// Limits: grains and pillars that an operator clears on one master (salt-run cache.clear_all) come back from the
// others; a mine that is cleared is cleared everywhere, unless its directory goes with it. One that the master's own
// code removes comes back when, between that and Spread, data of it arrive that were sent before. A record without a
// pillar does not remove the one a master has. A pillar that 3006 or 3007 compiled for a pillarenv is not known to be
// for one. A 3008 master may answer minions from its cached pillars (pillar_cache: True), and one of another master may
// be older than what was asked for: the caller has it rendered anew then (Config.PillarComes).
// 3008's resource_grains are not carried: minions register their resources with every 3008 master. When this process is
// killed within the microseconds in which it has a file of the master's under another name, and the master has just
// written that, this write is lost: the next start removes what has such names. On a file system that cannot exchange
// files, a write of the master in the same microseconds is also lost.
package datacache
