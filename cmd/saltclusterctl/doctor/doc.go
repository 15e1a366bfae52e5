// Package doctor finds what is wrong around a node of the cluster: on its host,
// between the nodes, and on the path of the minions to them.
//
// In: what saltclusterd says (package adminapi), what the kernel shows below
// /proc, files of Salt, an HAProxy configuration, the network. Out: Findings,
// each with what is wrong, what minions and operators see of it, in Salt's own
// words where it has any, and what to type next; and Symptoms, those words with
// their causes.
//
// Promises: nothing is changed; every look is bounded in time and bytes, also
// when who answers is hostile; a look that is not possible (no root, no
// daemon) says so as a finding of level skip and hides no other; secrets and
// private keys are not read.
//
// The probe of 4505 and 4506 uses go-zeromq/zmq4, which shares no code with
// the edge: a mistake of ours in the protocol must not look right to itself.
package doctor
