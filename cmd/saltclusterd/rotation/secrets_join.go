package rotation

import (
	"context"
	"fmt"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

// rotateJoinSecret replaces the secret that nodes join with, in up to two steps: the new secret is accepted beside
// the old one, then the old one is refused. Members do not use it; the configured one matters only to a node that
// joins.
func (s *Secrets) rotateJoinSecret(
	ctx context.Context, r adminapi.RotateRequest, p admin.Progress,
) (adminapi.Outcome, error) {
	if err := s.cfg.Knows(state.LevelJoin); err != nil {
		return adminapi.Outcome{}, err
	}
	if r.Finish {
		return s.finishJoinSecret(ctx, r, p)
	}
	if err := peer.ValidateSecret(string(r.Secret)); err != nil {
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeInvalid, "", "the new secret: %v", err)
	}
	agreed := s.cfg.Log.View().JoinSecrets()
	if agreed.Overlap && !r.Now {
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeRefused, "saltclusterctl rotate secret --finish, or --now",
			"the rotation to cluster secret number %d is not finished: the former one is still accepted", agreed.Current.N)
	}
	out := adminapi.Outcome{Message: fmt.Sprintf("cluster secret number %d is accepted", agreed.Current.N+1)}
	if r.Now {
		out.Message += " and no other"
	} else {
		out.Message += ", and the former one, too"
		out.Next = append(out.Next, "write the new secret where the old one stands in the configuration of every node",
			"saltclusterctl rotate secret --finish")
	}
	down := s.cfg.describeDown("%s is down: until it is back and has the log, nobody can join through it")
	out.Next = append(out.Next, down...)
	if r.DryRun {
		return out, nil
	}
	p("rotate", "asking the cluster to accept the new secret")
	_, err := s.cfg.Decide(ctx, state.JoinSecretSet{
		Expect: agreed.Current.N, Key: state.NewSecret(peer.SecretBytes(string(r.Secret))), Keep: !r.Now,
		Audit: state.Audit{Cause: "rotate"},
	})
	return out, err
}

// finishJoinSecret makes the cluster refuse the former secret.
func (s *Secrets) finishJoinSecret(
	ctx context.Context, r adminapi.RotateRequest, p admin.Progress,
) (adminapi.Outcome, error) {
	agreed := s.cfg.Log.View().JoinSecrets()
	if !agreed.Overlap {
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeRefused, "saltclusterctl rotate secret begins one",
			"no rotation of the cluster secret is under way")
	}
	out := adminapi.Outcome{Message: fmt.Sprintf("cluster secret number %d is accepted and no other", agreed.Current.N)}
	if r.DryRun {
		return out, nil
	}
	p("rotate", "asking the cluster to refuse the former secret")
	_, err := s.cfg.Decide(ctx, state.JoinSecretDrop{N: agreed.Current.N, Audit: state.Audit{Cause: "rotate"}})
	return out, err
}

// Problems returns what the status shows of the join secret.
func (s *Secrets) Problems() (out []adminapi.Problem) {
	agreed := s.cfg.Log.View().JoinSecrets()
	if agreed.Current.N == 0 {
		return nil
	}
	if agreed.Overlap {
		out = append(out, adminapi.Problem{
			Level: adminapi.LevelWarn, Hint: "saltclusterctl rotate secret --finish",
			Message: fmt.Sprintf("two cluster secrets are accepted since %s",
				time.UnixMilli(agreed.Current.At).Local().Format("2006-01-02 15:04:05")),
		})
	}
	own := s.cfg.JoinSecret
	if own.IsSet() && !state.NewSecret(peer.SecretBytes(own.Reveal())).Equal(agreed.Current.Key) {
		out = append(out, adminapi.Problem{
			Level: adminapi.LevelWarn, Node: string(s.cfg.Self),
			Hint: "write the new one into the configuration, or remove it there",
			Message: fmt.Sprintf("the configured cluster secret is not number %d, which the cluster has agreed on; "+
				"it matters only if %s joins again", agreed.Current.N, s.cfg.Self),
		})
	}
	return out
}
