package publishing

import (
	"log/slog"
	"slices"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/fanout"
	"saltclusterd/sidecar/localmaster/configtest"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/wall"
)

// counting counts what it is to send.
type counting struct{ sent int }

func (*counting) PeekLocal(plain []byte) (saltwire.PubPeek, error) { return saltwire.PeekPub(plain) }

func (c *counting) Local(fanout.Publication, saltwire.PubPeek) error {
	c.sent++
	return nil
}

// Each job is sent once: what the job cache was read for is not sent again, and copies for topics are no further jobs.
func TestPublisher_Publish(t *testing.T) {
	job := func(jid string) []byte {
		b, err := saltwire.AppendAny(nil, map[string]any{"jid": jid, "fun": "test.ping", "tgt": "*"}, saltwire.Wire)
		require.NoError(t, err)
		return b
	}
	var notified []string
	hub := &counting{}
	p := NewPublisher(PublisherConfig{
		Republished: func(jid string, _ []byte) bool { return jid == "late" },
		Overdue:     func(jid string) bool { return jid == "overdue" },
		Notify: []func(saltwire.PubPeek, []byte){func(peek saltwire.PubPeek, _ []byte) {
			notified = append(notified, peek.JID)
		}},
		Hub: func() Sender { return hub }, Logger: slog.New(slog.DiscardHandler),
	})
	for _, c := range []struct {
		pub  fanout.Publication
		sent int
	}{
		{fanout.Publication{Plain: job("one")}, 1},
		{fanout.Publication{Plain: job("one"), TopicOnly: true}, 2},
		{fanout.Publication{Plain: job("late")}, 2},
		{fanout.Publication{Plain: job("overdue")}, 2},
		{fanout.Publication{Plain: job("")}, 3},
	} {
		if err := p.Publish(c.pub); err != nil || hub.sent != c.sent {
			t.Errorf("%q: sent %d times, not %d; %v", c.pub.Plain, hub.sent, c.sent, err)
		}
	}
	if err := p.Publish(fanout.Publication{Plain: []byte("unreadable")}); err == nil || hub.sent != 3 {
		t.Errorf("sent %d times; %v", hub.sent, err)
	}
	if err := p.PublishMissed(job("missed")); err != nil || hub.sent != 4 {
		t.Errorf("sent %d times; %v", hub.sent, err)
	}
	if err := p.PublishMissed([]byte("unreadable")); err == nil || hub.sent != 4 {
		t.Errorf("sent %d times; %v", hub.sent, err)
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
