// Package operator answers what operators ask about a node and its cluster: status, members, ring, jobs, the
// comparison of what nodes hold, doctor's questions, and the source of the status page. It judges the health of what
// belongs to the process and to the membership as a whole.
//
// A Node answers for a process, with or without a cluster. A Cluster answers for the running membership; it asks the
// other members for their Stats and answers theirs. Ledgers compares what the nodes hold, section by section.
//
// In: the consensus log, gossip, the stats of the other members, the results of all health checks, and functions of
// other capabilities that find problems. Out: the values of package adminapi, and results of health checks.
//
// Promises: a report needs no leader and no majority. A member that does not answer delays a status by a second at most
// and takes nothing from the other rows. What members report is bounded before it is shown.
package operator
