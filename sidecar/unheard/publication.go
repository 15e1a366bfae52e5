package unheard

import (
	"errors"
	"fmt"

	"saltclusterd/sidecar/saltvalue"
	"saltclusterd/sidecar/saltwire"
)

var errNotPublished = errors.New("no load of a publication")

// always are the entries of a load that a publication has; of its kwargs it has some if they are there, in this order.
var (
	always     = []string{"fun", "arg", "tgt", "jid", "ret"}
	fromKwargs = []string{"ret_config", "metadata", "module_executors", "executor_opts", "ret_kwargs"}
)

// firstWithStartEvent is the Salt version from which on a publication may ask for an event when the job starts.
const firstWithStartEvent = 3008

// master is what a publication has of the master's options.
type master struct {
	major int    // version
	id    string // master_id; empty: not set
}

// publication makes of a load that a master has saved what it has published (salt/master.py ClearFuncs._prep_pub), encoded for the network.
// A load that was not saved by a publication is an error that wraps errNotPublished: runners, salt-ssh and returns save some, too.
func (m master) publication(load []byte) ([]byte, error) {
	fields, ok := saltvalue.ParseFields(load)
	if !ok {
		return nil, errNotPublished
	}
	if cmd, _ := fields.Get("cmd"); !isText(cmd, "publish") || fields.Has("return") {
		return nil, errNotPublished
	}
	out := builder{}
	for _, name := range always {
		raw, ok := fields.Get(name)
		if !ok {
			return nil, fmt.Errorf("%w: it has no %s", errNotPublished, name)
		}
		out.add(name, raw)
	}
	extra, _ := fields.Get("kwargs")
	kwargs, _ := saltvalue.ParseFields(extra) // none where there is none
	copyIf := func(from saltvalue.Fields, name string) (is bool) {
		raw, is := from.Get(name)
		if is {
			out.add(name, raw)
		}
		return is
	}
	if !copyIf(kwargs, "master_id") && m.id != "" {
		out.add("master_id", saltwire.AppendStr(nil, m.id))
	}
	if raw, ok := kwargs.Get("delimiter"); ok && !isText(raw, ":") {
		out.add("delimiter", raw)
	}
	copyIf(kwargs, "id")
	copyIf(fields, "tgt_type")
	copyIf(fields, "to")
	for _, name := range fromKwargs {
		copyIf(kwargs, name)
	}
	if raw, ok := kwargs.Get("start_event"); ok && m.major >= firstWithStartEvent && saltvalue.Truth(raw) {
		out.add("start_event", saltwire.AppendBool(nil, true))
	}
	copyIf(fields, "user")
	plain, err := out.encode()
	if err != nil {
		return nil, err
	}
	if _, err := saltwire.PeekPub(plain); err != nil {
		return nil, fmt.Errorf("what was published: %w", err)
	}
	return plain, nil
}

func isText(raw []byte, want string) bool {
	text, ok := saltvalue.Text(raw)
	return ok && text == want
}

// builder encodes a map for the network of values as they are on disk.
type builder struct {
	names []string
	raws  [][]byte
}

func (b *builder) add(name string, raw []byte) {
	b.names, b.raws = append(b.names, name), append(b.raws, raw)
}

func (b *builder) encode() (out []byte, err error) {
	out = saltwire.AppendMapHeader(nil, len(b.names))
	for i, raw := range b.raws {
		out = saltwire.AppendRaw(out, b.names[i])
		var rest []byte
		if out, rest, err = saltvalue.AppendWire(out, raw); err != nil {
			return nil, fmt.Errorf("encode %s: %w", b.names[i], err)
		}
		if len(rest) > 0 {
			return nil, fmt.Errorf("encode %s: %w", b.names[i], saltvalue.ErrMalformed)
		}
	}
	return out, nil
}
