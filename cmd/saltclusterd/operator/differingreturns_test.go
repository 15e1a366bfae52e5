package operator

import (
	"fmt"
	"strings"
	"testing"

	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/saltlog"
)

func TestDescribeDiffering(t *testing.T) {
	if p := DescribeDiffering(nil); p != nil {
		t.Errorf("%+v", p)
	}
	var differing []saltlog.DifferingReturn
	for i := range maxDifferingNamed + 2 {
		differing = append(differing, saltlog.DifferingReturn{Minion: fmt.Sprint("web", i), JID: "20261121040506000001"})
	}
	p := DescribeDiffering(differing)
	if len(p) != 1 || p[0].Level != adminapi.LevelWarn || p[0].Hint == "" ||
		!strings.Contains(p[0].Message, "web0 (job 20261121040506000001)") || !strings.HasSuffix(p[0].Message, "2 more") {
		t.Errorf("%+v", p)
	}
}
