package daemon

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"saltclusterd/cmd/saltclusterd/native"
	"saltclusterd/cmd/saltclusterd/sharewatch"
)

// emptyService has all its parts, none of which works.
func emptyService() *service {
	s := &service{native: new(native.Service)}
	for _, v := range withParts(s) {
		for i := range v.NumField() {
			if f := v.Field(i); f.Kind() == reflect.Pointer && f.Type().Implements(reflect.TypeFor[part]()) {
				reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem().Set(reflect.New(f.Type().Elem()))
			}
		}
	}
	return s
}

// withParts lists the structs that have parts in their fields.
func withParts(s *service) []reflect.Value {
	return []reflect.Value{reflect.ValueOf(s).Elem(), reflect.ValueOf(s.native).Elem()}
}

// Whatever can be opened is in the list, by which every process opens, one that takes over from another one, too: a
// part that is forgotten there leaves its work to the salt-master, or undone, from the first upgrade on, and nobody
// notices.
func TestParts_Complete(t *testing.T) {
	s := emptyService()
	opened := map[any]bool{}
	for _, p := range s.parts() {
		if opened[p.part] {
			t.Errorf("%s is opened twice", p.name)
		}
		opened[p.part] = true
	}
	for _, v := range withParts(s) {
		for i := range v.NumField() {
			f, name := v.Field(i), v.Type().Field(i).Name
			if name == "m" || !f.Type().Implements(reflect.TypeFor[part]()) { // m is what has the service
				continue
			}
			if p := reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem().Interface(); !opened[p] {
				t.Errorf("%s.%s is not opened", v.Type(), name)
			}
		}
	}
}

// What hands something to the bus ends before it. What everything else needs ends last, and is there first.
func TestTheOrderOfParts(t *testing.T) {
	s := emptyService()
	parts := s.parts()
	at := func(p part) int { return slices.IndexFunc(parts, func(l listed) bool { return l.part == p }) }
	for i, p := range []part{s.share, masterPart{s}, s.dir} {
		if at(p) != i {
			t.Errorf("%T is number %d, not %d", p, at(p), i)
		}
	}
	for _, p := range []part{s.native.Returns, s.native.Events, s.signin, s.mirror, s.hub, s.data, s.cache} {
		if at(p) < at(s.bus) || at(p) < at(s.req) {
			t.Errorf("%T ends after the bus, or after what asks the master", p)
		}
	}
	if !(at(s.sub) < at(dutiesPart{s}) && at(dutiesPart{s}) < at(s.pub)) {
		t.Error("the subscription ends before what its last message waits for, or before the port that takes it")
	}
	if last := parts[len(parts)-2:]; !s.isEdge(last[0]) || !s.isEdge(last[1]) {
		t.Errorf("the edges are not the first that end, but %s and %s", last[1].name, last[0].name)
	}
	// What the master publishes has a way to minions before it is taken in.
	if parts[at(s.sub)].phase <= parts[at(s.pub)].phase {
		t.Error("a process that takes over opens the subscription before the port")
	}
}

// namedPart says when it is closed.
type namedPart struct {
	name   string
	closed *[]string
	err    error
}

func (p *namedPart) Open(context.Context) error { return p.err }

func (p *namedPart) Close() error {
	*p.closed = append(*p.closed, p.name)
	return nil
}

// Close ends what is open backwards, whatever the order in which it was opened.
func TestPartsEndBackwards(t *testing.T) {
	var closed []string
	list := []listed{
		{"a", &namedPart{name: "a", closed: &closed}, exclusive}, {"b", &namedPart{name: "b", closed: &closed}, shared},
		{"c", &namedPart{name: "c", closed: &closed}, exclusive},
		{"d", &namedPart{name: "d", closed: &closed, err: errors.New("no")}, incoming},
		{"e", &namedPart{name: "e", closed: &closed}, outgoing}, {"f", &namedPart{name: "f", closed: &closed}, shared},
	}
	s := &service{share: new(sharewatch.Watch)}
	for _, of := range []phase{shared, outgoing, incoming, exclusive} {
		err := s.openParts(t.Context(), list, func(p listed) bool { return p.phase == of })
		if (err != nil) != (of == incoming) {
			t.Errorf("phase %d: %v", of, err)
		}
	}
	if err := s.closePart(list[2]); err != nil { // an old process does that beforehand
		t.Fatal(err)
	}
	if err := s.closeParts(list); err != nil || !slices.Equal(closed, []string{"c", "f", "e", "b", "a"}) {
		t.Errorf("%q, %v", closed, err)
	}
}
