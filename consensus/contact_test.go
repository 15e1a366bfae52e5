package consensus

import (
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"saltclusterd/integration/check"
)

func TestContact(t *testing.T) {
	t0 := time.Unix(1000, 0)
	at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
	var c contact
	if _, ever := c.stateAge(t0, 100); ever {
		t.Error("caught up without having asked anybody")
	}
	c.noteAnswer(at(0), 10, 4, time.Minute) // a node that lags
	if _, ever := c.stateAge(at(1), 9); ever {
		t.Error("caught up before the target")
	}
	c.noteAnswer(at(2), 50, 9, time.Minute) // the older target stays open
	if age, ever := c.stateAge(at(3), 10); !ever || age != 3*time.Second {
		t.Errorf("age %v, %v", age, ever)
	}
	c.noteAnswer(at(4), 50, 20, time.Minute)
	if age, _ := c.stateAge(at(6), 20); age != 6*time.Second {
		t.Errorf("behind again: age %v", age)
	}
	if age, _ := c.stateAge(at(6), 50); age != 2*time.Second {
		t.Errorf("reached again: age %v", age)
	}
	c.noteAnswer(at(7), 50, 50, time.Minute)
	if age, _ := c.stateAge(at(7), 50); age != 0 {
		t.Errorf("in step: age %v", age)
	}
}

// TestContact_Behind checks for how long a node knows that it lacks something. Answers come at the seconds given.
func TestContact_Behind(t *testing.T) {
	type answer struct {
		at           int
		target, have uint64
	}
	const recent = 3 * time.Second
	t0 := time.Unix(1000, 0)
	at := func(s int) time.Time { return t0.Add(time.Duration(s) * time.Second) }
	for name, tc := range map[string]struct {
		answers []answer
		now     int
		have    uint64
		want    time.Duration
	}{
		"nobody was asked":                      {nil, 5, 1, 0},
		"it holds everything":                   {[]answer{{1, 10, 10}}, 2, 10, 0},
		"it has come":                           {[]answer{{1, 10, 9}}, 2, 10, 0},
		"an entry is missing":                   {[]answer{{1, 10, 9}}, 3, 9, 2 * time.Second},
		"it still is, whatever comes after":     {[]answer{{1, 10, 9}, {3, 11, 9}, {6, 19, 9}}, 8, 9, 7 * time.Second},
		"the older one has come":                {[]answer{{1, 10, 9}, {3, 11, 10}}, 4, 10, time.Second},
		"the leader is gone: nobody can tell":   {[]answer{{1, 10, 9}}, 5, 9, 0},
		"the leader is back: it counts from it": {[]answer{{1, 10, 9}, {60, 20, 9}}, 62, 9, 2 * time.Second},
	} {
		var c contact
		for _, a := range tc.answers {
			c.noteAnswer(at(a.at), a.target, a.have, recent)
		}
		check.Equal(t, c.behindFor(at(tc.now), tc.have, recent), tc.want, name, "behind for")
	}
}

func TestProgress(t *testing.T) {
	t0 := time.Unix(1000, 0)
	var p progress
	steps := []struct {
		stats        PeerStats
		err          error
		last, leader uint64
		stable       bool
	}{
		{PeerStats{}, nil, 100, 90, false},                            // first look: nothing to compare with
		{PeerStats{LastIndex: 99, Applied: 90}, nil, 110, 95, false},  // log too short
		{PeerStats{LastIndex: 110, Applied: 94}, nil, 110, 95, false}, // state too old
		{PeerStats{LastIndex: 110, Applied: 95}, nil, 120, 99, true},
		{PeerStats{LastIndex: 130, Applied: 99}, nil, 130, 99, true},
		{PeerStats{}, errors.New("gone"), 130, 99, false},
		{PeerStats{LastIndex: 130, Applied: 99, Syncing: true}, nil, 130, 99, false}, // what is not in the log is lacking
		{PeerStats{LastIndex: 130, Applied: 99}, nil, 130, 99, true},
	}
	for i, s := range steps {
		p.recordStats(t0.Add(time.Duration(i)*time.Second), s.stats, s.err, s.last, s.leader)
		if p.since.IsZero() == s.stable {
			t.Errorf("look %d: since %v", i, p.since)
		}
	}
	if want := t0.Add(7 * time.Second); !p.since.Equal(want) {
		t.Errorf("since %v, want %v: a failure starts it anew", p.since, want)
	}
}

// What raft calls a pipeline can hang for good, see Open.
func TestReplicationHasNoPipeline(t *testing.T) {
	c := form(t, 2, nil)
	_, err := c.nodes["m1"].trans.AppendEntriesPipeline("m2", "127.0.0.1:1")
	check.ErrorIs(t, err, raft.ErrPipelineReplicationNotSupported, "a pipeline to a follower")
}
