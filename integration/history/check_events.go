package history

// events: the tag of each event of a minion is its own, so every second hearing, wherever, is one too many.
func (j *judge) events() {
	heard := map[string][]Heard{}
	for _, e := range j.Heards {
		heard[e.Tag] = append(heard[e.Tag], e)
	}
	for _, tag := range sorted(heard) {
		if all := heard[tag]; len(all) > 1 {
			var where []string
			for _, e := range all {
				where = append(where, e.Node+" at "+j.clock(e.At))
			}
			j.blame(Violation{}, RuleEventOnce, "%s was heard %d times: %v", tag, len(all), where)
		}
	}
	for _, s := range j.Sents {
		if s.Acked.IsZero() || len(heard[s.Tag]) > 0 {
			continue
		}
		// It does not matter which node's bus it was meant for: any fault excuses.
		if !j.touched(s.At.Add(-j.o.Slack), s.Acked.Add(j.o.Answer), "", "") {
			j.blame(Violation{Minion: s.Minion}, RuleEventLost, "%s, acknowledged to %s at %s, was heard nowhere",
				s.Tag, s.Minion, j.clock(s.Acked))
		}
	}
}

func (j *judge) recovered() {
	for _, f := range j.Faults {
		if f.End.IsZero() {
			j.blame(Violation{}, RuleRecovered, "%s (%v), begun at %s, was not seen to be over", f.Kind, f.Nodes,
				j.clock(f.Start))
		}
	}
}
