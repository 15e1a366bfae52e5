package operator

import (
	"fmt"
	"strings"

	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/saltlog"
)

// maxDifferingNamed bounds the minions that status names as one id on two hosts.
const maxDifferingNamed = 5

// DescribeDiffering names the minions of which two returns for one job, published on this node, have differed
// lately.
func DescribeDiffering(differing []saltlog.DifferingReturn) []adminapi.Problem {
	if len(differing) == 0 {
		return nil
	}
	var names []string
	for _, t := range differing[:min(len(differing), maxDifferingNamed)] {
		names = append(names, fmt.Sprintf("%s (job %s)", t.Minion, t.JID))
	}
	if more := len(differing) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return []adminapi.Problem{{
		Level:   adminapi.LevelWarn,
		Message: "two returns of one minion for one job differed, and the first one was stored: " + strings.Join(names, ", "),
		Hint: "usually two hosts share one id and key, for example after cloning a machine: " +
			"run salt MINION network.ip_addrs a few times to see which; " +
			"on the clone, stop salt-minion, remove /etc/salt/minion_id and /etc/salt/pki/minion, and start it again",
	}}
}
