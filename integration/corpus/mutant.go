package corpus

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/tinylib/msgp/msgp"

	"saltclusterd/sidecar/saltwire"
)

// own are the fields of a load that say who sends it and when: they stay, or every master would say the same to all
// mutants.
var own = map[string]bool{"cmd": true, "id": true, "nonce": true, "tok": true, "ts": true}

// odd are values of other kinds than those that minions send, by what people call them.
var odd = []struct {
	name string
	raw  []byte
}{
	{"None", []byte{0xc0}},
	{"True", []byte{0xc3}},
	{"0", []byte{0x00}},
	{"-1", []byte{0xff}},
	{"''", []byte{0xa0}},
	{"{}", []byte{0x80}},
	{"[]", []byte{0x90}},
	{"b''", []byte{0xc4, 0x00}},
	{"no UTF-8", []byte{0xa1, 0xff}},
	{"'../'", []byte{0xa3, '.', '.', '/'}},
	{"'base'", []byte{0xa4, 'b', 'a', 's', 'e'}},
	{"[None]", []byte{0x91, 0xc0}},
	{"{'a': 1}", []byte{0x81, 0xa1, 'a', 0x01}},
	{"1.5", []byte{0xcb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0}},
	{"2**64-1", []byte{0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}},
	{"'ü'", []byte{0xa2, 0xc3, 0xbc}},
	{"'*'", []byte{0xa1, '*'}},
	{"newline", []byte{0xa1, '\n'}},
}

// Kinds of mutants.
const (
	LeftOut   = "left out"
	OtherName = "under another name"
	OtherKind = "of another kind"
	Within    = "something in it of another kind"
	OneMore   = "one more"
)

// Kinds are all of them.
var Kinds = []string{LeftOut, OtherName, OtherKind, Within, OneMore}

// Mutation says how a mutant differs from the request that it was made of.
type Mutation struct {
	Kind  string
	Field string
	Value string // one of odd
	Mark  string // stands in its effects: its job, or the end of its events' tags
}

// String is for people.
func (m Mutation) String() string {
	if m.Value == "" {
		return fmt.Sprintf("%s %s", m.Field, m.Kind)
	}
	return fmt.Sprintf("%s %s: %s", m.Field, m.Kind, m.Value)
}

type field struct{ key, value []byte }

// slow is the command for which a master waits: others' returns, of jobs that a minion has published.
const slow = "minion_pub"

// Mutants makes n requests that no minion sends, the same for the same seed: one half of any requests, the other of
// each command as many as of the others.
func (c *Corpus) Mutants(n, seed uint64) (out []Request) {
	byCmd := map[string][]Request{}
	for _, r := range c.Requests {
		byCmd[r.Cmd] = append(byCmd[r.Cmd], r)
	}
	commands := slices.DeleteFunc(slices.Sorted(maps.Keys(byCmd)), func(cmd string) bool { return cmd == slow })
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range n {
		of := c.Requests
		if i%2 == 0 {
			of = byCmd[commands[i/2%uint64(len(commands))]]
		}
		one := of[r.IntN(len(of))]
		load, how := Mutant(one.Load, r, fmt.Sprintf("variant-%d-", i))
		out = append(out, Request{Cmd: one.Cmd, Load: load, Mutation: how})
	}
	return out
}

// Mutant returns a request of which one field was left out, given another value or another name, has something else
// within it, or that has one more. What belongs to a job belongs to another one, or it would be a return that comes
// again, and tags of events end with the mark.
func Mutant(load []byte, r *rand.Rand, mark string) ([]byte, Mutation) {
	fields := fieldsOf(load)
	for i, f := range fields {
		switch {
		case string(f.key) == "jid" && job.Match(f.value):
			mark = fmt.Sprintf("20200101%012d", r.Int64N(1e12))
			fields[i].value = saltwire.AppendRaw(nil, mark)
		case string(f.key) == "tag":
			fields[i].value = marked(f.value, mark)
		case string(f.key) == "events":
			fields[i].value = markedAll(f.value, mark)
		}
	}
	for before := pack(fields); ; {
		if out, m := mutant(slices.Clone(fields), r); !bytes.Equal(out, before) {
			m.Mark = mark
			return out, m
		}
	}
}

// marked is a tag with a mark behind it.
func marked(tag []byte, mark string) []byte {
	b, ok := saltwire.Bytes(tag)
	if !ok {
		return tag
	}
	return saltwire.AppendRaw(nil, string(b)+"/"+mark)
}

// markedAll marks the tags of a list of events.
func markedAll(events []byte, mark string) []byte {
	n, rest, err := msgp.ReadArrayHeaderBytes(events)
	if err != nil {
		return events
	}
	out := saltwire.AppendArrayHeader(nil, int(n))
	for ; n > 0; n-- {
		after, err := msgp.Skip(rest)
		if err != nil {
			return events
		}
		event := fieldsOf(rest[:len(rest)-len(after)])
		for i, f := range event {
			if string(f.key) == "tag" {
				event[i].value = marked(f.value, mark)
			}
		}
		out, rest = append(out, pack(event)...), after
	}
	return out
}

func mutant(fields []field, r *rand.Rand) ([]byte, Mutation) {
	var may []int
	for i, f := range fields {
		if !own[string(f.key)] {
			may = append(may, i)
		}
	}
	value := odd[r.IntN(len(odd))]
	if len(may) == 0 || r.IntN(10) == 0 {
		return pack(append(fields, field{[]byte("more"), value.raw})), Mutation{Kind: OneMore, Field: "more",
			Value: value.name}
	}
	i := may[r.IntN(len(may))]
	if r.IntN(3) == 0 { // something within a field, if one has anything
		var in [][3]int // field, begin and end
		for _, i := range may {
			for _, at := range within(nil, fields[i].value, 0) {
				in = append(in, [3]int{i, at[0], at[1]})
			}
		}
		if len(in) > 0 {
			at := in[r.IntN(len(in))]
			f := &fields[at[0]]
			f.value = slices.Concat(f.value[:at[1]], value.raw, f.value[at[2]:])
			return pack(fields), Mutation{Kind: Within, Field: string(f.key), Value: value.name}
		}
	}
	m := Mutation{Field: string(fields[i].key)}
	switch r.IntN(4) {
	case 0:
		m.Kind = LeftOut
		fields = slices.Delete(fields, i, i+1)
	case 1:
		m.Kind = OtherName
		fields[i].key = append([]byte("x"), fields[i].key...)
	default:
		m.Kind, m.Value = OtherKind, value.name
		fields[i].value = value.raw
	}
	return pack(fields), m
}

// within appends where the values in a list or map begin and end, and those in them, counted from base.
func within(dst [][2]int, raw []byte, base int) [][2]int {
	n, rest, err := msgp.ReadArrayHeaderBytes(raw)
	isMap := err != nil
	if isMap {
		if n, rest, err = msgp.ReadMapHeaderBytes(raw); err != nil {
			return dst
		}
	}
	for ; n > 0; n-- {
		if isMap {
			if rest, err = msgp.Skip(rest); err != nil {
				return dst
			}
		}
		after, err := msgp.Skip(rest)
		if err != nil {
			return dst
		}
		from, to := base+len(raw)-len(rest), base+len(raw)-len(after)
		dst = within(append(dst, [2]int{from, to}), rest[:len(rest)-len(after)], from)
		rest = after
	}
	return dst
}

// fieldsOf takes a load apart. Keys that are not text, which no minion sends, are left out.
func fieldsOf(load []byte) (out []field) {
	n, rest, err := msgp.ReadMapHeaderBytes(load)
	for ; err == nil && n > 0; n-- {
		var value, after []byte
		if value, err = msgp.Skip(rest); err != nil {
			break
		}
		key, ok := saltwire.Bytes(rest[:len(rest)-len(value)])
		if after, err = msgp.Skip(value); err != nil {
			break
		}
		if ok {
			out = append(out, field{key, value[:len(value)-len(after)]})
		}
		rest = after
	}
	return out
}

func pack(fields []field) []byte {
	out := saltwire.AppendMapHeader(nil, len(fields))
	for _, f := range fields {
		out = append(saltwire.AppendRaw(out, f.key), f.value...)
	}
	return out
}

// Fresh returns a load with these values in place of those it has.
func Fresh(load []byte, with map[string]any) ([]byte, error) {
	fields := fieldsOf(load)
	for i, f := range fields {
		v, ok := with[string(f.key)]
		if !ok {
			continue
		}
		var err error
		if fields[i].value, err = saltwire.AppendAny(nil, v, saltwire.Wire); err != nil {
			return nil, err
		}
	}
	return pack(fields), nil
}
