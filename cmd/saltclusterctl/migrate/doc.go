// Package migrate has the verb that brings nodes from a file system that masters share to their own disks:
// saltclusterctl migrate.
//
// In: the admin socket. Out: the plan, the steps and how far each node is. It guides through all nodes, one at a time,
// and can be interrupted and repeated.
package migrate
