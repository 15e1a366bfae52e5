// Package doctor finds faults around a node of the cluster: on its host, between the nodes, and on the path from
// minions to them.
//
// In: the reports of saltclusterd (package adminapi), /proc, files of Salt, an HAProxy configuration, the network. Out:
// Findings, each with the fault, what minions and operators see of it (in Salt's own words where it has any), and what
// to type next; and Symptoms, messages of Salt with their possible causes.
//
// Promises: nothing is changed. Each check is bounded in time and bytes, even if the other side is hostile. A check
// that cannot be made (not root, no daemon) is a finding of level skip and hides no other. Secrets and private keys are
// not read.
//
// The probe of 4505 and 4506 uses go-zeromq/zmq4, which shares no code with the edge, so that a mistake in our
// implementation of the protocol cannot hide itself.
package doctor
