package operator

import (
	"fmt"
	"strings"
	"testing"

	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/saltlog"
)

func TestTwinProblems(t *testing.T) {
	if p := TwinProblems(nil); p != nil {
		t.Errorf("%+v", p)
	}
	var twins []saltlog.Twin
	for i := range maxTwinsNamed + 2 {
		twins = append(twins, saltlog.Twin{Minion: fmt.Sprint("web", i), JID: "20261121040506000001"})
	}
	p := TwinProblems(twins)
	if len(p) != 1 || p[0].Level != adminapi.LevelWarn || p[0].Hint == "" ||
		!strings.Contains(p[0].Message, "web0 (job 20261121040506000001)") || !strings.HasSuffix(p[0].Message, "2 more") {
		t.Errorf("%+v", p)
	}
}
