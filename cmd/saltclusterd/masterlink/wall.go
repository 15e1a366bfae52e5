package masterlink

import (
	"context"

	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/wall"
)

// WallModes reads the option cluster_wall, which has been validated.
func WallModes(option map[string]string) map[wall.Rule]wall.Mode {
	modes := map[wall.Rule]wall.Mode{}
	for name, text := range option {
		rule, badRule := wall.ParseRule(name)
		mode, badMode := wall.ParseMode(text)
		if badRule == nil && badMode == nil {
			modes[rule] = mode
		}
	}
	return modes
}

// WallPolicy reads the options of the local master that rules for requests depend on.
func WallPolicy(master *localmaster.Config) wall.Policy {
	p := wall.Policy{
		FileRecv: master.Bool("file_recv"), Syndics: master.Bool("order_masters"), Filters: filtersTags(master.Version),
	}
	if master.SetBy("on_demand_ext_pillar") != "" {
		p.OnDemand = master.Strings("on_demand_ext_pillar")
	}
	return p
}

// filtersTags says whether a master of a version itself keeps tags of masters out of lists of events.
func filtersTags(v localmaster.Version) bool {
	switch v.Major {
	case 3006:
		return v.Minor >= 12
	case 3007:
		return v.Minor >= 4
	}
	return v.Major >= 3008
}

// WallLine sums up what the rules have found.
func WallLine(found []wall.Found) *adminapi.WallLine {
	line := &adminapi.WallLine{}
	for _, f := range found {
		switch f.Mode {
		case wall.Enforce:
			line.Enforced++
		case wall.Log:
			line.Log++
		default:
			line.Off++
		}
		line.Refused += f.Refused
		line.Logged += f.Logged
	}
	return line
}

// WallVerbs implements admin.Waller, with or without a membership.
type WallVerbs struct {
	Self string
	Of   func() (*wall.Wall, error) // the rules of the running membership, or why there are none
	// List returns the protocol versions of minions, or why there are none.
	List func(context.Context) (adminapi.Protocols, error)
}

// Wall lists the rules and what they have found.
func (v WallVerbs) Wall(context.Context) (adminapi.Wall, error) {
	rules, err := v.Of()
	if err != nil {
		return adminapi.Wall{}, err
	}
	out := adminapi.Wall{From: v.Self}
	for _, f := range rules.Found() {
		info := wall.Rules[f.Rule]
		out.Rules = append(out.Rules, adminapi.WallRule{
			Name: info.Name, Mode: f.Mode.String(), Fixed: info.Fixed, Doc: info.Doc,
			Refused: f.Refused, Logged: f.Logged, Last: f.Last.At, Minion: f.Last.ID,
		})
	}
	return out, nil
}

// Protocols lists the protocol versions of minions.
func (v WallVerbs) Protocols(ctx context.Context) (adminapi.Protocols, error) {
	return v.List(ctx)
}
