package daemon

import (
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"saltclusterd/fsync/share"
)

// emptyService has all its parts, none of which works.
func emptyService() *service {
	s := new(service)
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Pointer && f.Type().Implements(reflect.TypeFor[part]()) {
			reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem().Set(reflect.New(f.Type().Elem()))
		}
	}
	return s
}

// Whatever can be opened is opened by a process that takes over, too: a part that is forgotten there leaves its work to the salt-master, or
// undone, from the first upgrade on, and nobody notices.
func TestASuccessorOpensEverything(t *testing.T) {
	s := emptyService()
	opened := map[any]bool{s.trees: true} // by treesPart
	for _, parts := range [][]part{s.shared(), s.connected(), s.exclusive()} {
		for _, p := range parts {
			opened[p] = true
		}
	}
	if !slices.Contains(s.exclusive(), part(treesPart{s})) {
		t.Error("the roots are not opened by a process that takes over")
	}
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		if name == "m" || !f.Type().Implements(reflect.TypeFor[part]()) { // m is what has the service
			continue
		}
		if p := reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem().Interface(); !opened[p] {
			t.Errorf("service.%s is not opened by a process that takes over", name)
		}
	}
}

// What hands something to the bus ends before it, in a process that has taken over as in one that has not.
func TestASuccessorClosesTheBusLast(t *testing.T) {
	s := emptyService()
	s.share = new(share.Share)
	for _, p := range slices.Concat(s.shared(), s.connected()) {
		s.open = append(s.open, p)
	}
	s.open = append(s.open, closerFunc(func() {})) // cannot be compared
	for _, p := range s.exclusive() {
		s.closeBefore(p)
	}
	at := func(p part) int {
		return slices.IndexFunc(s.open, func(c closer) bool { _, fn := c.(closerFunc); return !fn && c == closer(p) })
	}
	for _, p := range append(s.exclusive(), s.fired) {
		after := p == part(s.dir) || p == part(s.share)
		if i := at(p); i < 0 || (i < at(s.bus)) != after {
			t.Errorf("%T is number %d of those that Close ends backwards, the bus number %d", p, i, at(s.bus))
		}
	}
	if len(s.open) != len(s.shared())+len(s.connected())+1+len(s.exclusive()) {
		t.Errorf("%d parts", len(s.open))
	}
}
