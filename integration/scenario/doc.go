// Package scenario holds the end-to-end tests: stock masters and minions of three versions, real HAProxy, real faults.
// They need the build tag "integration", what "make setup" installs and what "make build" makes; "make
// test-integration" does it all. Where network namespaces are impossible the tests that break the network are skipped.
//
// Each scenario has a lab of its own, whose network meets no other's, and waits for Python more than it computes: two
// run beside each other (make test-integration), those that judge a load or a memory ceiling alone.
//
// One cluster serves the subtests of each TestCluster test, in their order; each leaves it whole.
// RUN=TestClusterKeys/keys picks one.
package scenario
