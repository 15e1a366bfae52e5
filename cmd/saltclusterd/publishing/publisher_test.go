package publishing

import (
	"log/slog"
	"slices"
	"testing"

	"saltclusterd/sidecar/fanout"
	"saltclusterd/sidecar/localmaster/configtest"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/wall"
)

// Each job is sent once: what the job cache was read for is not sent again, and copies for topics are no further jobs.
func TestPublisher_Publish(t *testing.T) {
	job := func(jid string) []byte {
		b, err := saltwire.AppendAny(nil, map[string]any{"jid": jid, "fun": "test.ping", "tgt": "*"}, saltwire.Wire)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var notified []string
	sent := 0
	p := NewPublisher(PublisherConfig{
		Republished: func(jid string, _ []byte) bool { return jid == "late" },
		Notify: []func(saltwire.PubPeek, []byte){func(peek saltwire.PubPeek, _ []byte) {
			notified = append(notified, peek.JID)
		}},
		Send: func(fanout.Publication) error { sent++; return nil }, Logger: slog.New(slog.DiscardHandler),
	})
	for _, c := range []struct {
		pub  fanout.Publication
		sent int
	}{
		{fanout.Publication{Plain: job("one")}, 1},
		{fanout.Publication{Plain: job("one"), TopicOnly: true}, 2},
		{fanout.Publication{Plain: job("late")}, 2},
		{fanout.Publication{Plain: job("")}, 3},
		{fanout.Publication{Plain: []byte("unreadable")}, 4},
	} {
		if err := p.Publish(c.pub); err != nil || sent != c.sent {
			t.Errorf("%q: sent %d times, not %d; %v", c.pub.Plain, sent, c.sent, err)
		}
	}
	if err := p.PublishMissed(job("missed")); err != nil || sent != 5 {
		t.Errorf("sent %d times; %v", sent, err)
	}
	if err := p.PublishMissed([]byte("unreadable")); err == nil || sent != 5 {
		t.Errorf("sent %d times; %v", sent, err)
	}
	if want := []string{"one", "missed"}; !slices.Equal(notified, want) {
		t.Errorf("notified of %q, want %q", notified, want)
	}
}

func TestMissedOff(t *testing.T) {
	for name, c := range map[string]struct {
		conf         string
		shared, late bool
		syndics      wall.Mode
		searched     bool
	}{
		"searched":         {"", false, true, wall.Enforce, true},
		"a share":          {"", true, true, wall.Enforce, false},
		"the option":       {"", false, false, wall.Enforce, false},
		"a rule that logs": {"", false, true, wall.Log, false},
		"syndics":          {"order_masters: True\n", false, true, wall.Enforce, false},
		"no job cache":     {"ext_job_cache: mysql\n", false, true, wall.Enforce, false},
	} {
		if off := MissedOff(configtest.Load(t, 3007, c.conf), c.shared, c.late, c.syndics); (off == "") != c.searched {
			t.Errorf("%s: %q", name, off)
		}
	}
}
