package corpus

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tinylib/msgp/msgp"

	"saltclusterd/sidecar/saltwire"
)

// own are the fields of a load that say who sends it and when: they stay, or every master would say the same to all mutants.
var own = map[string]bool{"cmd": true, "id": true, "nonce": true, "tok": true, "ts": true}

// odd are values of other kinds than those that minions send.
var odd = [][]byte{
	{0xc0}, {0xc3}, {0x00}, {0xff}, {0xa0}, {0x80}, {0x90}, {0xc4, 0x00}, {0xa1, 0xff}, {0xa3, '.', '.', '/'}, {0xa4, 'b', 'a', 's', 'e'},
	{0x91, 0xc0}, {0x81, 0xa1, 'a', 0x01}, {0xcb, 0x3f, 0xf8, 0, 0, 0, 0, 0, 0}, {0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	{0xa2, 0xc3, 0xbc}, {0xa1, '*'}, {0xa1, '\n'},
}

type field struct{ key, value []byte }

// Mutant returns a request of which one field was left out, given another value or another name, or that has one more. What belongs to a
// job belongs to another one, or it would be a return that comes again.
func Mutant(load []byte, r *rand.Rand) []byte {
	fields := fieldsOf(load)
	for i, f := range fields {
		if string(f.key) == "jid" && job.Match(f.value) {
			fields[i].value = saltwire.AppendRaw(nil, fmt.Sprintf("20200101%012d", r.Int64N(1e12)))
		}
	}
	for before := pack(fields); ; {
		if m := mutant(slices.Clone(fields), r); !bytes.Equal(m, before) {
			return m
		}
	}
}

func mutant(fields []field, r *rand.Rand) []byte {
	var may []int
	for i, f := range fields {
		if !own[string(f.key)] {
			may = append(may, i)
		}
	}
	value := odd[r.IntN(len(odd))]
	if len(may) == 0 || r.IntN(8) == 0 {
		return pack(append(fields, field{[]byte("more"), value}))
	}
	i := may[r.IntN(len(may))]
	switch r.IntN(4) {
	case 0:
		fields = append(fields[:i:i], fields[i+1:]...)
	case 1:
		fields[i].key = append([]byte("x"), fields[i].key...)
	default:
		fields[i].value = value
	}
	return pack(fields)
}

// fieldsOf takes a load apart. Keys that are no text stay out, which no minion sends.
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
