package hostile

import (
	"fmt"
	"slices"
	"strings"

	"saltclusterd/sidecar/router"
)

// Request is one thing the minion says, before it is sealed.
type Request struct {
	N      int
	Cmd    string
	Class  router.Class
	Twists []string // what is wrong with it

	fields   []entry
	wrap     wrap
	carriage carriage
}

// String describes it for people.
func (r *Request) String() string {
	out := fmt.Sprintf("request %d: %q", r.N, r.Cmd)
	if len(r.Twists) > 0 {
		out += " (" + strings.Join(r.Twists, ", ") + ")"
	}
	return out
}

// names says whether a request has a field of that name.
func (r *Request) names(field string) bool {
	return slices.ContainsFunc(r.fields, func(e entry) bool { return string(e.key) == string(text(field)) })
}

func (r *Request) twist(format string, args ...any) {
	r.Twists = append(r.Twists, fmt.Sprintf(format, args...))
}

// totalWeight of all shapes.
var totalWeight = func() (sum int) {
	for _, s := range shapes {
		sum += max(s.weight, 1)
	}
	return sum
}()

func (d *dice) shape() shape {
	at := d.IntN(totalWeight)
	for _, s := range shapes {
		if at -= max(s.weight, 1); at < 0 {
			return s
		}
	}
	return shapes[0]
}

// request makes the n-th request of a scene.
func (s *scene) request(n int) *Request {
	d := s.dice(n)
	sh := d.shape()
	d.spread = sh.cmd == "minion_pub" || sh.cmd == "minion_publish"
	r := &Request{N: n, Cmd: sh.cmd, Class: sh.class}
	if d.in(25) {
		r.Cmd = one(d, notCommands...)
		r.twist("no command")
	}
	if d.in(30) {
		r.Class = one(d, router.Clear, router.AES)
		r.twist("class %d", r.Class)
	}
	r.fields = append(r.fields, pair("cmd", text(r.Cmd)))
	for _, f := range sh.fields {
		if !f.sometimes || d.in(2) {
			r.fields = append(r.fields, pair(f.name, d.value(f.kind)))
		}
	}
	for range d.IntN(3) {
		r.mutate(d)
	}
	if d.in(20) {
		i := d.IntN(len(r.fields))
		r.twist("%.20q as an extension", r.fields[i].key)
		r.fields[i].value = d.asExtension(r.fields[i].value)
	}
	if d.in(6) {
		r.rewrap(d)
	}
	if d.in(12) {
		r.carriage = 1 + carriage(d.IntN(int(carriages)-1))
		r.twist("%s", r.carriage)
	}
	return r
}

// mutate changes one thing about the fields.
func (r *Request) mutate(d *dice) {
	i := d.IntN(len(r.fields))
	switch f := r.fields[i]; d.IntN(8) {
	case 0:
		r.fields = append(r.fields[:i:i], r.fields[i+1:]...)
		if len(r.fields) == 0 {
			r.fields = []entry{pair("cmd", text(r.Cmd))}
		}
		r.twist("without %.20q", f.key)
	case 1:
		r.fields = append(r.fields, entry{f.key, d.odd()})
		r.twist("%.20q twice", f.key)
	case 2, 3:
		r.fields[i].value = d.odd()
		r.twist("odd %.20q", f.key)
	case 4:
		name := one(d, "id", "tok", "nonce", "ts", "sig", "__kwarg__", "user", "master_id", "jid", "load", "events", "tag",
			"data", "minions", d.mark())
		r.fields = append(r.fields, pair(name, one(d, d.odd(), text(d.other()), d.aJid(), d.data())))
		r.twist("%s besides", name)
	case 5:
		r.fields[i].key = one(d, d.odd(), bin(string(f.key)), text(strings.ToUpper(string(f.key))), d.asExtension(f.key))
		r.twist("odd name of %.20q", f.key)
	case 6:
		for n := range 200 {
			r.fields = append(r.fields, pair(fmt.Sprint("filler", n), number(int64(n))))
		}
		r.twist("200 fields besides")
	case 7:
		r.fields[i].value = list(f.value)
		r.twist("%.20q in a list", f.key)
	}
}
