package takeover

import (
	"reflect"
	"testing"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/check"
	"saltclusterd/sidecar/router"
)

func TestRecords_RoundTrip(t *testing.T) {
	jobs := jobList{JIDs: []string{"2", "1"}, Publishers: []node.ID{"m1", "m2"}}
	b := base{UUID: "u", Names: []string{"lock", "tcp 10.0.0.1:4505"}, Snapshot: []byte("snapshot"), Jobs: jobs}
	got, err := parseBase(b.encodeRecord())
	if err != nil || !reflect.DeepEqual(got, b) {
		t.Errorf("%+v, %v", got, err)
	}
	r := finalState{
		Clock: 1 << 60, Jobs: jobs, Hub: []byte("hub"), Recent: []byte("recent"), Intake: []byte("intake"),
		Subscription: []byte("sub"),
		Nodes:        []router.Node{everyField(t, router.Node{}), {ID: "m2", Draining: true}}, Leader: "m2",
	}
	final, err := parseFinalState(r.encodeRecord())
	if err != nil || !reflect.DeepEqual(final, r) {
		t.Errorf("%+v, %v", final, err)
	}
	h, err := parseHello(append(hello{State: 7, Version: "v"}.encodeRecord(), "what a later version adds"...))
	if err != nil || h.State != 7 || h.Version != "v" {
		t.Errorf("%+v, %v", h, err)
	}
	all := jobList{JIDs: []string{"3", "2", "1"}, Publishers: []node.ID{"m1", "m1", "m2"}}
	check.EqualSlices(t, all.jobsOf("m1"), []string{"3", "2"}, "jobs of m1")
	table := router.NewJobs(0)
	jobs.recordJobs(table)
	check.DeepEqual(t, listJobs(table, 10), jobs)
}

// everyField sets all fields of a struct, so that the test fails for a new field that is not handed over.
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

func FuzzRecords(f *testing.F) {
	f.Add(base{UUID: "u", Names: []string{"lock"}}.encodeRecord())
	f.Add(finalState{Nodes: []router.Node{{ID: "m1"}}}.encodeRecord())
	f.Add(hello{State: 1, Version: "v"}.encodeRecord())
	f.Fuzz(func(t *testing.T, b []byte) {
		_, _ = parseBase(b)
		_, _ = parseFinalState(b)
		_, _ = parseHello(b)
	})
}
