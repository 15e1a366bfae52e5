// Package migrate has the verb that moves nodes from a file system that their masters share to their own disks:
// saltclusterctl migrate.
//
// In: the admin socket. Out: the plan, the steps and the progress of each node.
//
// Promises: it guides the operator through all nodes, one at a time, and can be interrupted and repeated.
package migrate
