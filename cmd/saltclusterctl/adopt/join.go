package adopt

import (
	"cmp"
	"fmt"
	"path/filepath"

	"saltclusterd/cmd/saltclusterctl/doctor"
)

// isJoining says whether this host is to become a node of a cluster that is there already.
func (s *Site) isJoining() bool {
	return !s.isMember() && (s.Asked.Join != "" || s.Own.Cluster.JoinTokenFile != "")
}

// joinsWith is what becomes of the master's own key.
func (s *Site) joinsWith() string {
	if s.Keys["minions"] > 0 && len(s.Markers) == 0 {
		return "minions trust this key; join refuses unless the cluster has the same one"
	}
	return "is replaced by the cluster's key; a backup stays in the same directory"
}

// checkBroughtKeys tells how a master's own keys come along. Without it join refuses where something would be lost.
func (c *checks) checkBroughtKeys() {
	s := c.site
	if !s.isJoining() {
		return
	}
	if n := s.Keys["minions"]; n > 0 && len(s.Markers) == 0 {
		c.addFinding("keys", doctor.Warn, s.KeysDir, fmt.Sprintf("%d accepted here; join refuses unless the cluster has these keys", n),
			"the cluster would reject these minions",
			fmt.Sprintf("saltclusterctl keys collect %[1]s.keys here; copy the file to a member, and there: saltclusterctl keys merge %[1]s.keys",
				c.node))
	}
	c.addFinding("roots", doctor.Warn, "", "the cluster's file_roots and pillar_roots replace this host's",
		"files that differ here are set aside",
		"compare them before you join; afterwards saltclusterctl roots conflicts lists what differed")
}

// keyToCome says where a master without a key gets one from.
func (s *Site) keyToCome() string {
	if s.isJoining() {
		return "join installs the cluster's key"
	}
	return "bootstrap creates it, and minions trust it from then on"
}

// tokenName is the file that a node without a secret may have its join token in. It need not be there: a token can be
// given to join itself.
const tokenName = "saltclusterd.join-token"

func (s *Site) tokenFile() string { return filepath.Join(filepath.Dir(s.Asked.Own), tokenName) }

// joinStep is the step that makes it a member.
func (s *Site) joinStep() Step {
	step := Step{Kind: Join, Command: "saltclusterctl join " + cmp.Or(s.Asked.Join, "PEER")}
	switch {
	case s.Own.Cluster.Secret.IsSet() || s.Own.Cluster.SecretFile != "":
		step.Why = "cluster_secret proves the right to join"
	case s.Own.Cluster.JoinToken().IsSet():
		step.Why = "the token in " + s.Own.Cluster.JoinTokenFile + " proves the right to join"
	default:
		step.Command += " --token-file -"
		step.Why, step.Token = "paste the token that saltclusterctl token create prints on a member", true
	}
	return step
}
