// Package chaos disturbs a running cluster at random and judges what it did meanwhile.
//
// # Vocabulary
//
// A Plan is a list of Steps that follows from a seed alone: which fault, on which nodes, for how long. The world is a
// cluster on the lab with everything that watches it: on each node a publisher and a listener (Salt's own clients, in
// Python), played minions (package play) that hang on one node each, stock minions behind HAProxy, and an operator who
// accepts and deletes keys. All of them write into one history (package history), which is judged at the end.
//
// # Order of a run
//
// The cluster comes up; jobs are published once a second, from every node in turn; the steps of the plan follow one
// another, each with a time to recover and a moment of peace; then everything is mended, the last returns are waited
// for, the job caches are read with Salt's own code, every node tells its view, and the deleted keys are tried.
//
// In: a lab, a seed, a duration. Out: the history and its violations.
package chaos
