// Package parity holds the yardstick of the whole product: one script of Salt commands, run against a bare stock master
// and against the cluster (publishing from its master of the same version), whose outputs must be the same once
// everything that differs between any two runs - job ids, times, process ids, hosts, order of answers - has been taken
// out.
//
// The script is a table (steps*.go), a step is one command line of Salt's own tools. Observe runs it and returns what
// was seen; Diff compares two observations. Masters of different versions differ from each other in many ways, so only
// equal versions are compared.
package parity
