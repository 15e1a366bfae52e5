package jobcache

import (
	"github.com/tinylib/msgp/msgp"

	"saltclusterd/sidecar/saltvalue"
	"saltclusterd/sidecar/wall"
)

// planEvent is salt/master.py:AESFuncs._minion_event with salt/daemons/masterapi.py:RemoteFuncs._minion_event. Whatever
// makes the master do more than fire (it writes to its log, or to the job cache for a syndic) is left to it, and
// whatever makes it stumble.
func (p *planner) planEvent(d fields) error {
	if id, ok := d.Get("id"); !ok || msgp.NextType(id) != msgp.StrType {
		return needs("an event without the id of its minion")
	}
	if raw, ok := d.Get("tag"); ok {
		if tag, _ := saltvalue.Text(raw); tag == "_salt_error" {
			return needs("an error of a minion, which the master notes in its log")
		}
	}
	list, ok := d.Get("events")
	if !ok {
		return p.planLone(d)
	}
	events, ok := saltvalue.ParseList(list)
	if !ok {
		return needs("events that are not a list")
	}
	before, pretagged, err := readPretag(d)
	if err != nil {
		return err
	}
	for _, raw := range events {
		tag, data, err := p.parseListed(raw)
		if err != nil {
			return err
		}
		tags := []string{tag}
		switch {
		case pretagged && p.c.major >= 3008:
			tags = []string{joinTag(before, tag), tag}
		case pretagged:
			tags = []string{tag, joinTag(before, tag)}
		}
		for _, tag := range tags {
			if err := p.planFire(tag, data); err != nil {
				return err
			}
		}
	}
	return nil
}

// planLone is an event that is the load itself.
func (p *planner) planLone(d fields) error {
	raw, ok := d.Get("tag")
	if !ok || !d.Has("data") {
		return nil // and answered like others
	}
	tag, ok := saltvalue.Text(raw)
	if !ok || tag == "" {
		return needs("an event whose tag is not text")
	}
	return p.planFire(tag, d.Set("_stamp", p.stamp).Raw())
}

// parseListed reads an event of a list: its tag, and what is fired.
func (p *planner) parseListed(raw []byte) (tag string, data []byte, err error) {
	e, ok := saltvalue.ParseFields(raw)
	if !ok {
		return "", nil, needs("an event that is not a map")
	}
	name, _ := e.Get("tag")
	if tag, ok = saltvalue.Text(name); !ok || tag == "" {
		return "", nil, needs("an event whose tag is not text")
	}
	if wall.StockTag(tag) {
		return "", nil, needs("an event with one of the master's own tags, which the master logs")
	}
	if own, ok := e.Get("data"); ok {
		if e, ok = saltvalue.ParseFields(own); !ok {
			return "", nil, needs("an event whose data are not a map")
		}
		if e.Has("minions") {
			return "", nil, needs("an event that names the minions of a syndic's job")
		}
	}
	return tag, e.Set("_stamp", p.stamp).Raw(), nil
}

// readPretag reads what the tags of a load are repeated under.
func readPretag(d fields) (base string, ok bool, err error) {
	raw, ok := d.Get("pretag")
	if !ok || msgp.NextType(raw) == msgp.NilType {
		return "", false, nil
	}
	if base, ok = saltvalue.Text(raw); !ok {
		return "", false, needs("a pretag that is not text")
	}
	return base, true, nil
}

// joinTag is salt/utils/event.py:tagify of a tag that is text.
func joinTag(base, tag string) string {
	if base == "" {
		return tag
	}
	return base + "/" + tag
}
