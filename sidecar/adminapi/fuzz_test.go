package adminapi

import (
	"bytes"
	"net/url"
	"testing"
)

// FuzzEvents is what a saltclusterd of any version can say to saltclusterctl while an operation runs.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("{\"progress\":{\"step\":\"a\",\"message\":\"b\"}}\n{\"outcome\":{\"node\":\"m1\"}}\n"))
	f.Add([]byte("{\"error\":{\"code\":\"denied\",\"message\":\"no\"}}"))
	f.Add([]byte("{}\n{}\nnull\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		steps := 0
		_, _ = new(Client).readEvents(t.Context(), bytes.NewReader(in), func(Progress) { steps++ })
		if lines := bytes.Count(in, []byte("\n")) + 1; steps > lines {
			t.Fatalf("%d steps in %d lines", steps, lines)
		}
	})
}

// FuzzParseRestore reads the query that comes with a snapshot.
func FuzzParseRestore(f *testing.F) {
	f.Add("wait=true&timeout=1m0s")
	f.Add("wait=1&timeout=-1ns&wait=2")
	f.Add("wait=f&timeout=0s&force=T")
	f.Fuzz(func(t *testing.T, query string) {
		q, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		r, err := ParseRestore(q)
		if err != nil {
			return
		}
		if again, err := ParseRestore(r.Values()); err != nil || again != r {
			t.Fatalf("%+v became %+v, %v", r, again, err)
		}
	})
}

// FuzzParseProfile reads the query for a profile.
func FuzzParseProfile(f *testing.F) {
	f.Add("kind=cpu&seconds=10&text=false")
	f.Add("kind=goroutines&seconds=0&text=true")
	f.Add("kind=heap&seconds=65535&text=0")
	f.Fuzz(func(t *testing.T, query string) {
		v, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		q, err := ParseProfile(v)
		if err != nil {
			return
		}
		if again, err := ParseProfile(q.Values()); err != nil || again != q || q.For > MaxProfile {
			t.Fatalf("%+v became %+v, %v", q, again, err)
		}
	})
}
