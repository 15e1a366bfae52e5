package daemon

import (
	"context"
	"errors"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/sidecar/adminapi"
)

// What only looks is answered by a node that serves, and the node goes on. Each answer is made of parts of the whole
// daemon, which a test of one package puts together in another way.
func TestVerbs_Look(t *testing.T) {
	t.Parallel()
	n := startNode(t, "m1", t.TempDir())
	birth := adminapi.BootstrapRequest{Wait: true, Timeout: longest}
	if _, err := n.Bootstrap(t.Context(), birth, quiet); err != nil {
		t.Fatal(err)
	}
	eventually(t, "serving", serves(n))
	eventually(t, "settled", func() error {
		if !n.tenure.Current().service().Settled.Load() {
			return errors.New("not yet")
		}
		return nil
	})
	c := adminapi.NewClient(n.cfg.Paths.AdminSocket)
	defer c.Close()
	type ctx = context.Context
	for name, ask := range map[string]func(ctx) error{
		"checkup":    answered(c.Checkup),
		"config":     answered(c.Config),
		"held keys":  answered(c.HeldKeys),
		"keys":       answered(func(x ctx) (adminapi.Keys, error) { return c.Keys(x, adminapi.KeyQuery{}) }),
		"jobs":       answered(func(x ctx) (adminapi.JobList, error) { return c.ListJobs(x, 10) }),
		"events":     answered(func(x ctx) (adminapi.HandledEvents, error) { return c.HandledEvents(x, "", 10) }),
		"members":    answered(c.Members),
		"migration":  answered(func(x ctx) (adminapi.Migration, error) { return c.Migration(x, false, "") }),
		"its plan":   answered(func(x ctx) (adminapi.Migration, error) { return c.Migration(x, true, "") }),
		"minions":    answered(c.Minions),
		"presence":   answered(c.Presence),
		"protocols":  answered(c.Protocols),
		"ring":       answered(func(x ctx) (adminapi.RingInfo, error) { return c.RingInfo(x, adminapi.RingQuery{}) }),
		"roots":      answered(c.RootsStatus),
		"history":    answered(c.RootsHistory),
		"conflicts":  answered(c.RootsConflicts),
		"status":     answered(c.Status),
		"tokens":     answered(c.Tokens),
		"unanswered": answered(c.UnansweredReturns),
		"verify":     answered(c.Verify),
		"wall":       answered(c.Wall),
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		check.NoError(t, ask(ctx), name)
		cancel()
	}
}

// answered is a question of which only the error counts.
func answered[T any](ask func(context.Context) (T, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := ask(ctx)
		return err
	}
}
