package joining

import (
	"context"
	"fmt"
	"time"

	"saltclusterd/consensus/state"
	"saltclusterd/gossip/peer"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
)

// RotateSecret replaces the cluster secret in up to two steps: the new one is accepted beside the old one, then the old
// one is refused. Members need neither; the configured secret matters only to a node that joins.
func (a *Admission) RotateSecret(
	ctx context.Context, r adminapi.RotateRequest, p admin.Progress,
) (adminapi.Outcome, error) {
	if err := a.cfg.Supported(state.LevelJoin); err != nil {
		return adminapi.Outcome{}, err
	}
	if r.Finish {
		return a.finishSecretRotation(ctx, r, p)
	}
	if err := peer.ValidateSecret(string(r.Secret)); err != nil {
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeInvalid, "", "the new secret: %v", err)
	}
	v := a.cfg.Log().View()
	agreed := v.JoinSecrets()
	if agreed.Overlap && !r.Now {
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeRefused, "saltclusterctl rotate secret finish, or --now",
			"the rotation to cluster secret number %d is not finished: the former one is still accepted", agreed.Current.N)
	}
	out := adminapi.Outcome{Message: fmt.Sprintf("cluster secret number %d is accepted", agreed.Current.N+1)}
	if r.Now {
		out.Message += " and no other"
	} else {
		out.Message += " beside the former one"
		out.Next = append(out.Next, "replace the old secret by the new one in the configuration of every node",
			"saltclusterctl rotate secret finish")
	}
	for _, mem := range v.Members() {
		if !a.cfg.Alive(mem.ID) {
			out.Next = append(out.Next,
				fmt.Sprintf("%s is down: until it is back and has the log, no node can join through it", mem.ID))
		}
	}
	if r.DryRun {
		return out, nil
	}
	p("rotate", "asking the cluster to accept the new secret")
	_, err := a.cfg.Decide(ctx, state.JoinSecretSet{
		Expect: agreed.Current.N, Key: state.NewSecret(peer.SecretBytes(string(r.Secret))), Keep: !r.Now,
		Audit: a.cfg.Audit("rotate"),
	})
	return out, err
}

func (a *Admission) finishSecretRotation(
	ctx context.Context, r adminapi.RotateRequest, p admin.Progress,
) (adminapi.Outcome, error) {
	agreed := a.cfg.Log().View().JoinSecrets()
	if !agreed.Overlap {
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeRefused, "saltclusterctl rotate secret begins one",
			"no rotation of the cluster secret is under way")
	}
	out := adminapi.Outcome{Message: fmt.Sprintf("only cluster secret number %d is accepted", agreed.Current.N)}
	if r.DryRun {
		return out, nil
	}
	p("rotate", "asking the cluster to refuse the former secret")
	_, err := a.cfg.Decide(ctx, state.JoinSecretDrop{N: agreed.Current.N, Audit: a.cfg.Audit("rotate")})
	return out, err
}

// TakesSecret says whether a node can join with the cluster secret.
func (a *Admission) TakesSecret() bool {
	return a.cfg.Secret.IsSet() || a.cfg.Log().View().JoinSecrets().Current.N > 0
}

// SecretProblems lists what an operator should do about the cluster secret.
func (a *Admission) SecretProblems() (out []adminapi.Problem) {
	agreed := a.cfg.Log().View().JoinSecrets()
	if agreed.Current.N == 0 {
		return nil
	}
	if agreed.Overlap {
		out = append(out, adminapi.Problem{
			Level: adminapi.LevelWarn, Hint: "saltclusterctl rotate secret finish",
			Message: fmt.Sprintf("two cluster secrets are accepted since %s",
				time.UnixMilli(agreed.Current.At).Local().Format("2006-01-02 15:04:05")),
		})
	}
	if a.cfg.Secret.IsSet() && !state.NewSecret(peer.SecretBytes(a.cfg.Secret.Reveal())).Equal(agreed.Current.Key) {
		out = append(out, adminapi.Problem{
			Level: adminapi.LevelWarn, Node: string(a.cfg.Self),
			Hint: "write the new one into the configuration, or remove it there",
			Message: fmt.Sprintf("the configured cluster secret is not number %d, which the cluster has agreed on; "+
				"this matters only if %s joins again",
				agreed.Current.N, a.cfg.Self),
		})
	}
	return out
}
