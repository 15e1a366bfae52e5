package daemon

import (
	"log/slog"
	"slices"
	"testing"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/health"
)

// TestChecks_WhatLoadBalancersAsk names the checks that take minions away from a node: /pub and /req, and readyz as well.
func TestChecks_WhatLoadBalancersAsk(t *testing.T) {
	cfg := config.DefaultConfig()
	cfg.ID = "a"
	d, err := New(&cfg, "test", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	for scope, want := range map[health.Scope][]string{
		health.ScopePub: {"member", "behind", "edges"},
		health.ScopeReq: {"member", "behind", "edges", "master", "returns"},
	} {
		var got []string
		for _, f := range d.checks.Report(scope).Findings {
			got = append(got, f.Check)
		}
		if !slices.Equal(got, want) {
			t.Errorf("scope %d has %q, want %q", scope, got, want)
		}
	}
}
