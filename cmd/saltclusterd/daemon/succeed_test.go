package daemon

import (
	"reflect"
	"testing"

	"saltclusterd/fsync/share"
)

// Whatever can be opened is opened by a process that takes over, too: a part that is forgotten there leaves its work to the salt-master, or
// undone, from the first upgrade on, and nobody notices.
func TestASuccessorOpensEverything(t *testing.T) {
	s := &service{share: new(share.Share)} // some nodes have none
	opened := map[reflect.Type]bool{}
	for _, parts := range [][]part{s.shared(), s.connected(), s.exclusive()} {
		for _, p := range parts {
			opened[reflect.TypeOf(p)] = true
		}
	}
	opened[reflect.TypeOf(s.trees)] = opened[reflect.TypeFor[treesPart]()]
	wanted, fields := reflect.TypeFor[part](), reflect.TypeFor[service]()
	for field := range fields.Fields() {
		if kind := field.Type; field.Name != "m" && kind.Implements(wanted) && !opened[kind] { // m is what has the service
			t.Errorf("service.%s is not opened by a process that takes over", field.Name)
		}
	}
}
