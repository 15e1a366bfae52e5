package daemon

import (
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"saltclusterd/cmd/saltclusterd/drain"
	"saltclusterd/cmd/saltclusterd/lifecycle"
	"saltclusterd/cmd/saltclusterd/masterlink"
	"saltclusterd/cmd/saltclusterd/native"
	"saltclusterd/cmd/saltclusterd/ports"
	"saltclusterd/cmd/saltclusterd/publishing"
	"saltclusterd/cmd/saltclusterd/replication"
)

var partType = reflect.TypeFor[lifecycle.Part]()

// emptyService has all its parts, none of which works.
func emptyService() *service {
	s := &service{
		m: &member{}, native: new(native.Service), master: &masterlink.Link{Umask: new(masterlink.Umask)}, drain: new(drain.Runner),
		ports: new(ports.Ports),
	}
	s.stores, s.jobs = new(replication.Stores), new(publishing.Publications)
	for _, f := range partFields(s) {
		f.Set(reflect.New(f.Type().Elem()))
	}
	return s
}

// partFields lists the fields of a service, and of the groups of parts in it, that are parts.
func partFields(s *service) []reflect.Value {
	var out []reflect.Value
	var walk func(reflect.Value)
	walk = func(v reflect.Value) {
		for i := range v.NumField() {
			f := v.Field(i)
			switch {
			case v.Type().Field(i).Name == "m": // what has the service
			case f.Kind() == reflect.Pointer && f.Type().Implements(partType):
				out = append(out, reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem())
			case f.Kind() == reflect.Struct && v.Type().Field(i).Anonymous:
				walk(f)
			}
		}
	}
	for _, group := range []any{s, s.jobs, s.native, s.stores, s.master, s.ports} {
		walk(reflect.ValueOf(group).Elem())
	}
	return out
}

// Whatever can be opened is in the list, by which every process opens, one that takes over from another one, too: a
// part that is forgotten there leaves its work to the salt-master, or undone, from the first upgrade on, and nobody
// notices.
func TestParts_Complete(t *testing.T) {
	s := emptyService()
	opened := map[any]bool{}
	for _, p := range s.listParts() {
		if opened[p.Part] {
			t.Errorf("%s is opened twice", p.Name)
		}
		opened[p.Part] = true
	}
	fields := partFields(s)
	if len(fields) < 16 {
		t.Fatalf("only %d parts found", len(fields))
	}
	for _, f := range fields {
		if !opened[f.Interface()] {
			t.Errorf("%s is not opened", f.Type())
		}
	}
}

// What hands something to the bus ends before it. What everything else needs ends last, and is there first.
func TestTheOrderOfParts(t *testing.T) {
	s := emptyService()
	parts := s.listParts()
	at := func(p lifecycle.Part) int {
		return slices.IndexFunc(parts, func(l lifecycle.Listed) bool { return l.Part == p })
	}
	named := func(name string) int {
		return slices.IndexFunc(parts, func(l lifecycle.Listed) bool { return l.Name == name })
	}
	if at(s.share) != 0 || named("the master's files") != 1 || at(s.dir) != 2 {
		t.Errorf("the share, the master's files and the key directory are number %d, %d and %d", at(s.share),
			named("the master's files"), at(s.dir))
	}
	for _, p := range []lifecycle.Part{
		s.native.Returns, s.native.Events, s.signin, s.mirror, s.hub, s.stores.Data, s.stores.Jobs,
	} {
		if at(p) < at(s.master.Bus) || at(p) < at(s.master.Requests) {
			t.Errorf("%T ends after the bus, or after what asks the master", p)
		}
	}
	if !(at(s.master.Publications) < named("duties") && named("duties") < at(s.ports.Publish)) {
		t.Error("the subscription ends before what its last message waits for, or before the port that takes it")
	}
	if last := parts[len(parts)-2:]; !s.isEdge(last[0]) || !s.isEdge(last[1]) {
		t.Errorf("the edges are not the first that end, but %s and %s", last[1].Name, last[0].Name)
	}
	// What the master publishes has a way to minions before it is taken in.
	if parts[at(s.master.Publications)].Phase <= parts[at(s.ports.Publish)].Phase {
		t.Error("a process that takes over opens the subscription before the port")
	}
}

// Each duty starts once, in a cold start as in a takeover.
func TestDuties(t *testing.T) {
	coldStart := []lifecycle.Stage{lifecycle.ConsensusOpen, lifecycle.PartsOpen, lifecycle.EdgesOpen}
	takeover := []lifecycle.Stage{lifecycle.EdgesTaken, lifecycle.ConsensusOpen, lifecycle.DisksFree}
	var all []string
	for _, d := range slices.Concat((&member{}).duties(), emptyService().duties()) {
		if !slices.Contains(coldStart, d.InColdStart) || !slices.Contains(takeover, d.InTakeover) {
			t.Errorf("%s never starts", d.Name)
		}
		if slices.Contains(all, d.Name) {
			t.Errorf("%s is there twice", d.Name)
		}
		all = append(all, d.Name)
	}
	if len(all) < 20 {
		t.Errorf("only %d duties", len(all))
	}
}

func TestTakeLocks_NoMember(*testing.T) { (&Daemon{tenure: lifecycle.NewTenure[member]()}).TakeLocks() }
