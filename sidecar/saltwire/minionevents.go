package saltwire

import "errors"

// MaxEvents is how many events of one _minion_event are looked at singly.
const MaxEvents = 65536

// EventTags returns the tag of each event of Peek.Events; "" for one whose tag is not text. Errors: *Refused, for a
// list that no Salt sends, on which a master's Python is to have its say.
func EventTags(events []byte) ([]string, error) {
	var tags []string
	err := WalkArray(events, func(event []byte) error {
		if len(tags) == MaxEvents {
			return refuse(ReasonSize, "events")
		}
		var s seen
		tag := ""
		err := WalkMap(event, func(key, value []byte) error {
			if string(key) != "tag" {
				return nil
			}
			if err := s.checkFirst(peekTag, "tag"); err != nil {
				return err
			}
			b, _ := Bytes(value)
			tag = string(b[:min(len(b), maxName)])
			return nil
		})
		tags = append(tags, tag)
		return err
	})
	if err != nil {
		return nil, err
	}
	return tags, nil
}

// PickEvents returns the load of a _minion_event with only those events that keep names by their place, in the order
// they stand. Nothing else of it changes by a byte: what a master fires beside the events is what it would fire for
// all.
func PickEvents(plain []byte, keep func(i int) bool) ([]byte, error) {
	h, err := readHead(plain)
	if err != nil {
		return nil, err
	}
	it, err := openMap(plain, sealedRules)
	if err != nil {
		return nil, err
	}
	out := append(make([]byte, 0, len(plain)), plain[:h.len]...)
	found := false
	for {
		entry := it.rest
		key, value, ok, err := it.nextPair()
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		entry = entry[:len(entry)-len(it.rest)]
		if string(key) != "events" {
			out = append(out, entry...)
			continue
		}
		if found {
			return nil, refuse(ReasonDuplicate, "events")
		}
		found = true
		out = append(out, entry[:len(entry)-len(value)]...)
		if out, err = pickEvents(out, value, keep); err != nil {
			return nil, err
		}
	}
	if !found {
		return nil, errNoEvents
	}
	return out, nil
}

var errNoEvents = errors.New("saltwire: the load has no list of events")

func pickEvents(dst, list []byte, keep func(i int) bool) ([]byte, error) {
	var kept []byte
	n, i := 0, 0
	err := WalkArray(list, func(event []byte) error {
		if keep(i) {
			kept = append(kept, event...)
			n++
		}
		i++
		return nil
	})
	if err != nil {
		return nil, err
	}
	return append(AppendArrayHeader(dst, n), kept...), nil
}

// WalkEvents calls visit with the tag of each event of Peek.Events, in their order, and with what a master fires under
// it: the event's data, or the event itself when it has none. The values alias events. Errors: as of EventTags.
func WalkEvents(events []byte, visit func(tag, body Value)) error {
	n := 0
	return WalkArray(events, func(event Value) error {
		if n++; n > MaxEvents {
			return refuse(ReasonSize, "events")
		}
		var s seen
		var tag Value
		body := event
		err := WalkMap(event, func(key []byte, value Value) error {
			switch string(key) {
			case "tag":
				tag = value
				return s.checkFirst(peekTag, "tag")
			case "data":
				body = value
				return s.checkFirst(peekLoad, "data")
			}
			return nil
		})
		if err == nil {
			visit(tag, body)
		}
		return err
	})
}
