// Package dryrun says what a verb would do, without doing it.
//
// In: the status of the cluster and of the member that the verb concerns. Out: a Forecast.
//
// Promises: it only reads. A forecast is wrong if the cluster changes before the verb is used.
package dryrun
