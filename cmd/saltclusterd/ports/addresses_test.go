package ports

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

type fakeEdge struct {
	asked [][]string
	err   error
}

func (f *fakeEdge) ListenOn(_ context.Context, addrs []string) error {
	f.asked = append(f.asked, addrs)
	return f.err
}

// TestFollowAddresses wants edges to be asked when addresses change, and again until they listen on all.
func TestFollowAddresses(t *testing.T) {
	now := []string{"a"}
	f := addressFollower{addrs: func() (pub, req []string) { return now, now }, pub: now}
	pub, req := &fakeEdge{}, &fakeEdge{}
	for i, c := range []struct {
		addrs   []string
		err     error
		changed bool
		asked   int
	}{
		{[]string{"a"}, nil, false, 0},
		{[]string{"a", "b"}, nil, true, 1},
		{[]string{"a", "b"}, nil, false, 1},
		{nil, nil, false, 1},
		{[]string{"b"}, errors.New("tentative"), true, 2},
		{[]string{"b"}, nil, false, 3},
		{[]string{"b"}, nil, false, 3},
	} {
		now, pub.err = c.addrs, c.err
		changed, err := f.follow(t.Context(), pub, req)
		if changed != c.changed || (err != nil) != (c.err != nil) || len(pub.asked) != c.asked || len(req.asked) != c.asked {
			t.Errorf("%d: changed %t, %v, asked %d times", i, changed, err, len(pub.asked))
		}
	}
	if fmt.Sprint(req.asked) != "[[a b] [b] [b]]" {
		t.Errorf("asked for %v", req.asked)
	}
}
