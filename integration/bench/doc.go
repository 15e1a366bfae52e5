// Command bench measures saltclusterd against what it stands in front of or beside, paired in one run on one machine, and
// prints the results as markdown tables; with -write it puts them into docs/performance.md as well.
//
// # What is measured
//
//   - edgebench (a program of its own): 4506 echo and 4505 fan-out against libzmq.
//   - signin: CPU per `_auth` of an accepted key, bare stock masters against the same masters behind saltclusterd. The minions
//     are played at protocol level with real keys, and every reply is opened and verified afterwards. Where there is one, the build
//     with OpenSSL takes part.
//   - cluster: CPU per sign-in of all nodes, through each of three.
//   - forward: CPU in saltclusterd per forwarded request and the latency it adds, against real masters at a rate that they can
//     take, and at 1,000 requests/s against a stand-in for a master written in Go, for no stock master answers that many.
//   - flood: what minions get done while one address sends 10,000 requests/s that are refused, for 30 s (-flood-for).
//   - upgrade: what subscribers see while saltclusterd is upgraded in place: losses, reconnects and the pause.
//   - memory: resident memory with idle subscribers.
//   - herd: test.ping of a thousand played minions (package integration/herd), bare stock masters against the same behind
//     saltclusterd: until the last return is acknowledged, until the job cache is whole, until the command line tool has ended.
//     -herd 5000 for as many; a bare master is given half an hour then, and may not get through it.
//   - req: CPU per `_return` that no job asked for, bare stock masters against the same behind saltclusterd, and which processes use it.
//   - events: CPU per event of a minion, in the same way.
//   - mines: CPU per `_mine` and `_mine_get`, in the same way.
//   - replicas: what it costs that three nodes have a job, instead of the one that published it.
//   - join: what a node that joins waits for: keys and data of 10,000 minions; how long one accepted key takes to be everywhere.
//   - roots: a tree to a node that has none of it, a tree that has not changed, one changed file, against an rsync daemon over the same
//     veth; and the memory that takes, also with many files and with a large one.
//   - files: CPU per chunk, hash and list of files, bare stock masters against the same behind saltclusterd.
//   - pillar: CPU per pillar, bare stock masters against the same behind saltclusterd, and what saltclusterd adds.
//   - profile: what the processor's time of saltclusterd is spent on, on its three hottest paths; only when it is asked for.
//   - model: what integration/scale foretells beside what is measured, three nodes behind HAProxy; only when it is asked for (make test-scale).
//   - failover: how long the minions of a node that is killed are without one, three nodes behind HAProxy.
//
// # How
//
// CPU is utime+stime of /proc/<pid>/stat over the whole process tree, ended children included, so it does not depend on what
// else the machine does as much as wall time does. The sides take turns in every round; ratios are made within a round. Every
// figure is minimum/median/maximum over the rounds. All processes and sockets live in an integration/lab, whose directories are removed when all is
// measured (bench.inLab). Where CPU per request is measured no processor rests (bench.awake), but with -resting.
package main
