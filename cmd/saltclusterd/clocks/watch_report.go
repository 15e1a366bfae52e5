package clocks

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/hlc"
)

const hint = "timedatectl and chronyc tracking there show why: set the time and fix its synchronisation; saltclusterctl doctor compares all clocks"

// Check judges this host's clock.
func (w *Watch) Check() health.Result {
	off, majority := w.judge()
	if !majority {
		return health.Result{Level: health.Warn, Reason: describeSplit(w.offsets()), Hint: hint}
	}
	for _, o := range off {
		if o.Node == w.cfg.Self {
			return health.Result{Level: levelOf(o.Ahead), Reason: "this host's clock is " + aheadText(o.Ahead), Hint: hint}
		}
	}
	return health.Result{Level: health.OK}
}

// Problems names the other nodes whose clocks are wrong. It names none without a majority: Check says that.
func (w *Watch) Problems() (out []adminapi.Problem) {
	off, majority := w.judge()
	if !majority {
		return nil
	}
	for _, o := range off {
		if o.Node == w.cfg.Self {
			continue
		}
		level := adminapi.LevelWarn
		if levelOf(o.Ahead) == health.Fail {
			level = adminapi.LevelFail
		}
		out = append(out, adminapi.Problem{
			Level: level, Node: string(o.Node), Message: "the clock of its host is " + aheadText(o.Ahead), Hint: hint,
		})
	}
	return out
}

// levelOf is worse beyond the bound of hlc: certificates, tokens and job ids go wrong.
func levelOf(ahead time.Duration) health.Level {
	if ahead.Abs() > hlc.MaxAhead {
		return health.Fail
	}
	return health.Warn
}

func aheadText(d time.Duration) string {
	if d < 0 {
		return (-d).Round(time.Second).String() + " behind the cluster's"
	}
	return d.Round(time.Second).String() + " ahead of the cluster's"
}

// describeSplit compares the clocks of a cluster in which no majority agrees on a time.
func describeSplit(offsets map[node.ID]time.Duration) string {
	type clock struct {
		id    node.ID
		ahead time.Duration
	}
	var all []clock
	for id, ahead := range offsets {
		all = append(all, clock{id, ahead})
	}
	slices.SortFunc(all, func(a, b clock) int { return cmp.Or(cmp.Compare(a.ahead, b.ahead), cmp.Compare(a.id, b.id)) })
	var texts []string
	for _, c := range all[1:] {
		texts = append(texts, fmt.Sprintf("%s is %s ahead", c.id, (c.ahead-all[0].ahead).Round(time.Second)))
	}
	return fmt.Sprintf("the clocks of the nodes differ, and no majority agrees on the time: of %s, %s",
		all[0].id, strings.Join(texts, ", "))
}
