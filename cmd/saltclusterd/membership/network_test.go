package membership

import (
	"strings"
	"testing"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/health"
)

func TestJudgeNetwork(t *testing.T) {
	if r := judgeNetwork(nil); r.Level != health.OK {
		t.Errorf("all are reached: %+v", r)
	}
	r := judgeNetwork([]node.ID{"m3", "m2"})
	if r.Level != health.Warn || !strings.Contains(r.Reason, "reaches m2, m3 through other nodes only") {
		t.Errorf("two are not: %+v", r)
	}
}
