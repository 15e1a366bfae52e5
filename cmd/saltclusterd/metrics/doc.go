// Package metrics has the registries of this process, and the metrics of a service for minions that no part of it
// counts on its own.
//
// In: the counts of the service's parts. Out: what Prometheus collects.
//
// Promises: the metrics of a membership end with it, those of the host remain. Collecting waits for no disk.
package metrics
