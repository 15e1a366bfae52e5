package main

import (
	"testing"

	"saltclusterd/sidecar/adminapi"
)

func TestUnwell(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		name string
		of   adminapi.Member
		want bool
	}{
		{"serves", adminapi.Member{State: adminapi.StateAlive, Ready: &yes}, false},
		{"does not", adminapi.Member{State: adminapi.StateAlive, Ready: &no}, true},
		{"does not say", adminapi.Member{State: adminapi.StateAlive}, true},
		{"is drained", adminapi.Member{State: adminapi.StateAlive, Ready: &no, Draining: true}, false},
		{"a witness", adminapi.Member{State: adminapi.StateAlive, Role: adminapi.RoleWitness}, false},
		{"is away, drained before", adminapi.Member{State: adminapi.StateFailed, Ready: &no, Draining: true}, true},
	} {
		if got := isUnwell(c.of); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}
