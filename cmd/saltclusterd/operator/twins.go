package operator

import (
	"fmt"
	"strings"

	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/saltlog"
)

// maxTwinsNamed bounds the minions that status names as one id on two hosts.
const maxTwinsNamed = 5

// TwinProblems names the minions of which two returns for one job, published on this node, have differed lately.
func TwinProblems(twins []saltlog.Twin) []adminapi.Problem {
	if len(twins) == 0 {
		return nil
	}
	var names []string
	for _, t := range twins[:min(len(twins), maxTwinsNamed)] {
		names = append(names, fmt.Sprintf("%s (job %s)", t.Minion, t.JID))
	}
	if more := len(twins) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return []adminapi.Problem{{
		Level:   adminapi.LevelWarn,
		Message: "two returns of one minion for one job differed, and the first one was stored: " + strings.Join(names, ", "),
		Hint: "two hosts have the same id and key, as a rule, a clone of a machine say: " +
			"salt MINION network.ip_addrs, a few times, shows which; " +
			"on the clone stop salt-minion, remove /etc/salt/minion_id and /etc/salt/pki/minion, and start it",
	}}
}
