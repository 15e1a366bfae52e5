package missedjobs

import (
	"errors"
	"fmt"

	"saltclusterd/sidecar/saltvalue"
	"saltclusterd/sidecar/saltwire"
)

var errNotPublished = errors.New("not the load of a publication")

// Fields that every publication copies from the load, and those that it copies from the kwargs if present, in this
// order.
var (
	requiredFields = []string{"fun", "arg", "tgt", "jid", "ret"}
	kwargFields    = []string{"ret_config", "metadata", "module_executors", "executor_opts", "ret_kwargs"}
)

// firstWithStartEvent is the first Salt version whose publications may request an event when the job starts.
const firstWithStartEvent = 3008

// master holds the options of the master that go into a publication.
type master struct {
	major int    // version
	id    string // master_id; empty if not set
}

// buildPublication returns the publication that a master made when it saved load (salt/master.py ClearFuncs._prep_pub),
// encoded for the network. Loads saved by runners, salt-ssh and returns give an error that wraps errNotPublished.
func (m master) buildPublication(load []byte) ([]byte, error) {
	fields, ok := saltvalue.ParseFields(load)
	if !ok {
		return nil, errNotPublished
	}
	if cmd, _ := fields.Get("cmd"); !isText(cmd, "publish") || fields.Has("return") {
		return nil, errNotPublished
	}
	var out saltvalue.Fields
	for _, name := range requiredFields {
		raw, ok := fields.Get(name)
		if !ok {
			return nil, fmt.Errorf("%w: no field %s", errNotPublished, name)
		}
		out = out.Set(name, raw)
	}
	raw, _ := fields.Get("kwargs")
	kwargs, _ := saltvalue.ParseFields(raw) // none if the field is missing
	copyIf := func(from saltvalue.Fields, name string) (is bool) {
		raw, is := from.Get(name)
		if is {
			out = out.Set(name, raw)
		}
		return is
	}
	if !copyIf(kwargs, "master_id") && m.id != "" {
		out = out.Set("master_id", saltwire.AppendStr(nil, m.id))
	}
	if raw, ok := kwargs.Get("delimiter"); ok && !isText(raw, ":") {
		out = out.Set("delimiter", raw)
	}
	copyIf(kwargs, "id")
	copyIf(fields, "tgt_type")
	copyIf(fields, "to")
	for _, name := range kwargFields {
		copyIf(kwargs, name)
	}
	if raw, ok := kwargs.Get("start_event"); ok && m.major >= firstWithStartEvent && saltvalue.Truth(raw) {
		out = out.Set("start_event", saltwire.AppendBool(nil, true))
	}
	copyIf(fields, "user")
	plain, _, err := saltvalue.AppendWire(nil, out.Raw())
	if err != nil {
		return nil, fmt.Errorf("encode publication: %w", err)
	}
	if _, err := saltwire.PeekPub(plain); err != nil {
		return nil, fmt.Errorf("check publication: %w", err)
	}
	return plain, nil
}

func isText(raw []byte, want string) bool {
	text, ok := saltvalue.Text(raw)
	return ok && text == want
}
