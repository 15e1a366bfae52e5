// Package dryrun says what a verb would do, without doing it.
//
// In: the status of the cluster and of the member that a verb is about. Out: a Forecast.
//
// Promises: it only reads. A forecast can be wrong when a node fails in the meantime.
package dryrun
