//go:build integration

package scenario

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// A join that must not be: one sentence that names the option, and the joiner is as it was.
func TestJoinRefused(t *testing.T) {
	t.Parallel()
	l := labtest.New(t, lab.Options{})
	c, err := l.NewCluster(t.Context(), lab.ClusterSpec{Masters: []string{lab.Versions[0], lab.Versions[0]}})
	labtest.Must(t, err)
	ctx := t.Context()
	first, joiner := c.Nodes[0], c.Nodes[1]
	labtest.Must(t, first.Master.Start(ctx))
	labtest.Must(t, first.Master.WaitReady(ctx, 3*time.Minute))
	labtest.Must(t, first.Daemon.Start(ctx))
	labtest.Must(t, first.Daemon.WaitReady(ctx, time.Minute))
	labtest.Must(t, first.Daemon.Bootstrap(ctx))
	for _, s := range []struct {
		option string
		value  string
	}{
		{"cluster_secret", "another-secret-4f0c1d8e9a7b6352"},
		{"cluster_id", "another-cluster"},
		{"cluster_pub_fingerprint", strings.Repeat("ab", 32)},
	} {
		t.Run(s.option, func(t *testing.T) {
			labtest.Must(t, joiner.Daemon.Configure(lab.Settings{s.option: s.value}))
			labtest.Must(t, joiner.Daemon.Start(ctx))
			defer func() { labtest.Must(t, joiner.Daemon.Stop(ctx)) }()
			labtest.Must(t, joiner.Daemon.WaitReady(ctx, time.Minute))
			var res lab.Result
			labtest.Must(t, lab.Eventually(ctx, time.Minute, "a hearing", func(ctx context.Context) (err error) {
				if res, err = joiner.Daemon.Ctl(ctx, "join", first.Addr); err == nil &&
					strings.Contains(res.Output(), "slow down") {
					err = errors.New(res.Output()) // failed joins from one address are rate-limited
				}
				return err
			}))
			if res.Code == 0 || !strings.Contains(res.Output(), s.option) {
				t.Errorf("exit code %d, %s", res.Code, res.Output())
			}
			t.Log(res.Output())
			if joiner.Master.HasIdentity() {
				t.Error("the joiner has got an identity")
			}
		})
	}
	t.Run("short secret", func(t *testing.T) {
		labtest.Must(t, joiner.Daemon.Configure(lab.Settings{"cluster_secret": "short"}))
		labtest.Must(t, joiner.Daemon.Start(ctx))
		if err := joiner.Daemon.WaitReady(ctx, time.Minute); err == nil || !strings.Contains(err.Error(), "cluster_secret") {
			t.Errorf("it starts, or does not say why: %v", err)
		}
	})
}
