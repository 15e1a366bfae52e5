package native

import (
	"strings"
	"testing"
	"time"

	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/returns"
)

func TestCheckUnanswered(t *testing.T) {
	now := time.Now()
	young := returns.Unanswered{Minion: "web1", JID: "20261121040506000001", Since: now.Add(-time.Minute)}
	old := returns.Unanswered{Minion: "web2", Since: now.Add(-time.Hour)}
	for _, c := range []struct {
		name  string
		aside []returns.Unanswered
		full  bool
		want  string // in the reason; empty: nothing is wrong
	}{
		{"none", nil, false, ""},
		{"it may be answered yet", []returns.Unanswered{young}, false, ""},
		{
			"not answered for long", []returns.Unanswered{old, young}, false,
			"does not answer 2 returns that only it can process, although it answers others; the first is web2's of no job",
		},
		{"no room", []returns.Unanswered{young}, true, "no room for more"},
	} {
		r := checkUnanswered(c.aside, c.full, now)
		if warns := r.Level == health.Warn; warns != (c.want != "") || !strings.Contains(r.Reason, c.want) ||
			warns && !strings.Contains(r.Hint, "saltclusterctl returns list") {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}
