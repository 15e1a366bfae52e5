package daemon

import (
	"fmt"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/gossip/jointoken"
	"saltclusterd/sidecar/adminapi"
)

// joinRight is what this node has to prove that it may join, and to know the cluster by.
type joinRight struct {
	secret      config.Secret
	token       config.Secret // comes first
	fingerprint string

	replaceKey  bool // also where minions trust the local master's own key
	keysPending bool // also where the cluster does not know keys that are accepted here
}

// joinRight is what the operator named, and else what is configured.
func (d *Daemon) joinRight(r adminapi.JoinRequest) joinRight {
	c := d.cfg.Cluster
	right := joinRight{
		secret: c.Secret, token: c.JoinToken(), fingerprint: c.PubFingerprint, replaceKey: r.ReplaceKey, keysPending: r.KeysPending,
	}
	switch {
	case r.Token != "":
		right.token = config.NewSecret(string(r.Token))
	case r.Secret != "":
		right.secret, right.token = config.NewSecret(string(r.Secret)), config.Secret{}
	}
	if r.PubFingerprint != "" {
		right.fingerprint = r.PubFingerprint
	}
	return right
}

func (r joinRight) parse() (jointoken.Token, error) {
	if !r.token.IsSet() {
		return jointoken.Token{}, nil
	}
	t, err := jointoken.Parse(r.token.Reveal())
	if err != nil {
		return t, fmt.Errorf("the join token: %w", err)
	}
	return t, nil
}

// name is the right in a sentence.
func (r joinRight) name(t jointoken.Token) string {
	if t.IsZero() {
		return "cluster_secret"
	}
	return "the token " + t.ID()
}
