package daemon

import (
	"reflect"
	"slices"
	"testing"

	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/router"
)

func TestHandoverRecords(t *testing.T) {
	jobs := jobList{JIDs: []string{"2", "1"}, Publishers: []node.ID{"m1", "m2"}}
	b := base{UUID: "u", Names: []string{"lock", "tcp 10.0.0.1:4505"}, Snapshot: []byte("snapshot"), Jobs: jobs}
	got, err := parseBase(b.encode())
	if err != nil || !reflect.DeepEqual(got, b) {
		t.Errorf("%+v, %v", got, err)
	}
	r := rest{
		Clock: 1 << 60, Jobs: jobs, Hub: []byte("hub"), Intake: []byte("intake"), Sub: []byte("sub"),
		Nodes: []router.Node{everyField(t, router.Node{}), {ID: "m2", Draining: true}}, Leader: "m2",
	}
	rest, err := parseRest(r.encode())
	if err != nil || !reflect.DeepEqual(rest, r) {
		t.Errorf("%+v, %v", rest, err)
	}
	h, err := parseHello(append(hello{State: 7, Version: "v"}.encode(), "what a later version adds"...))
	if err != nil || h.State != 7 || h.Version != "v" {
		t.Errorf("%+v, %v", h, err)
	}
	all := jobList{JIDs: []string{"3", "2", "1"}, Publishers: []node.ID{"m1", "m1", "m2"}}
	if jids := all.of("m1"); !slices.Equal(jids, []string{"3", "2"}) {
		t.Errorf("jobs of m1: %v", jids)
	}
	table := router.NewJobs(0)
	jobs.record(table)
	if l := latestJobs(table, 10); !reflect.DeepEqual(l, jobs) {
		t.Errorf("%+v", l)
	}
}

// everyField sets all fields of a struct, so that one which is added later and not handed over is noticed.
func everyField[T any](t *testing.T, v T) T {
	t.Helper()
	for i, s := 0, reflect.ValueOf(&v).Elem(); i < s.NumField(); i++ {
		switch f := s.Field(i); f.Kind() {
		case reflect.String:
			f.SetString("text")
		case reflect.Bool:
			f.SetBool(true)
		case reflect.Int:
			f.SetInt(int64(i + 1))
		default:
			t.Fatalf("field of kind %s", f.Kind())
		}
	}
	return v
}

func FuzzHandoverRecords(f *testing.F) {
	f.Add(base{UUID: "u", Names: []string{"lock"}}.encode())
	f.Add(rest{Nodes: []router.Node{{ID: "m1"}}}.encode())
	f.Add(hello{State: 1, Version: "v"}.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = parseBase(b)
		_, _ = parseRest(b)
		_, _ = parseHello(b)
	})
}
