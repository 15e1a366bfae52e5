package joining

import (
	"fmt"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/gossip/jointoken"
	"saltclusterd/sidecar/adminapi"
)

// credentials are what a node proves its right to join with, and what it recognizes the cluster by.
type credentials struct {
	secret      config.Secret
	token       config.Secret // takes precedence
	fingerprint string
}

// credentialsFor returns what the operator named, and else what is configured.
func (j *Joiner) credentialsFor(r adminapi.JoinRequest) credentials {
	o := j.cfg.Options.Cluster
	c := credentials{secret: o.Secret, token: o.JoinToken(), fingerprint: o.PubFingerprint}
	switch {
	case r.Token != "":
		c.token = config.NewSecret(string(r.Token))
	case r.Secret != "":
		c.secret, c.token = config.NewSecret(string(r.Secret)), config.Secret{}
	}
	if r.PubFingerprint != "" {
		c.fingerprint = r.PubFingerprint
	}
	return c
}

func (c credentials) parseToken() (jointoken.Token, error) {
	if !c.token.IsSet() {
		return jointoken.Token{}, nil
	}
	t, err := jointoken.Parse(c.token.Reveal())
	if err != nil {
		return t, fmt.Errorf("the join token: %w", err)
	}
	return t, nil
}

// describeToken names in a sentence what is proved.
func describeToken(t jointoken.Token) string {
	if t.IsZero() {
		return "cluster_secret"
	}
	return "the token " + t.ID()
}
