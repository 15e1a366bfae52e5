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
		return "its minions trust it; join refuses unless it is the cluster's"
	}
	return "is replaced by the cluster's, and kept beside it"
}

// checkBroughtKeys tells how a master's own keys come along. Without it join refuses where something would be lost.
func (c *checks) checkBroughtKeys() {
	s := c.site
	if !s.isJoining() {
		return
	}
	if n := s.Keys["minions"]; n > 0 && len(s.Markers) == 0 {
		c.addFinding("keys", doctor.Warn, s.KeysDir, fmt.Sprintf("%d accepted here; join refuses unless the cluster knows them", n),
			"the cluster would turn these minions away", fmt.Sprintf("saltclusterctl keys collect %s.keys here, saltclusterctl keys merge %s.keys on a member", c.node, c.node))
	}
	c.addFinding("roots", doctor.Warn, "", "the cluster's file_roots and pillar_roots replace this host's",
		"what differs here is kept aside",
		"compare them before; afterwards saltclusterctl roots conflicts lists what differed")
}

// tokenName is the file that a node without a secret may have its join token in. It need not be there: a token can be
// given to join itself.
const tokenName = "saltclusterd.join-token"

func (s *Site) tokenFile() string { return filepath.Join(filepath.Dir(s.Asked.Own), tokenName) }

// joinCommand is the step that makes it a member, and why.
func (s *Site) joinCommand() (command, why string) {
	command = "saltclusterctl join " + cmp.Or(s.Asked.Join, "PEER")
	if s.Own.Cluster.Secret.IsSet() || s.Own.Cluster.SecretFile != "" {
		return command, "the right to join is cluster_secret"
	}
	if s.Own.Cluster.JoinToken().IsSet() {
		return command, "the right to join is the token in " + s.Own.Cluster.JoinTokenFile
	}
	return command + " --token-file -", "it waits for the token that saltclusterctl token create prints on a member"
}
