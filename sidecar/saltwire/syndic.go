package saltwire

// readSyndic reads where the loads of a _syndic_return belong. A syndic packs the returns of several jobs into one
// request, which may come from different masters: Mixed then tells the caller to look at each.
func (p *Peek) readSyndic() error {
	first := true
	return WalkArray(p.Loads, func(load []byte) error {
		one, err := peekReturn(load)
		if err != nil {
			return err
		}
		if first {
			first, p.JID, p.MasterID = false, one.JID, one.MasterID
		} else if one.JID != p.JID || one.MasterID != p.MasterID {
			p.Mixed = true
		}
		return nil
	})
}

// SyndicLoad is one of the loads of a _syndic_return.
type SyndicLoad struct {
	JID, MasterID string
	Raw           []byte // the load's msgpack; aliases the request
}

// SyndicLoads splits Peek.Loads. Errors: *Refused.
func SyndicLoads(loads []byte) ([]SyndicLoad, error) {
	var out []SyndicLoad
	err := WalkArray(loads, func(load []byte) error {
		one, err := peekReturn(load)
		out = append(out, one)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func peekReturn(load []byte) (SyndicLoad, error) {
	var s seen
	one := SyndicLoad{Raw: load}
	err := WalkMap(load, func(key, value []byte) error {
		switch string(key) {
		case "jid":
			return s.setJID(&one.JID, peekJID, value)
		case "master_id":
			return s.setMaster(&one.MasterID, peekMasterID, value)
		}
		return nil
	})
	return one, err
}
