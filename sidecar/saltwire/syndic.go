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

// syndicLoad is where one of the loads of a _syndic_return belongs.
type syndicLoad struct{ JID, MasterID string }

func peekReturn(load []byte) (syndicLoad, error) {
	var s seen
	var one syndicLoad
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
