package saltlog

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
)

type options map[string]string

func (o options) Text(name string) string { return o[name] }

func newLog(info bool) (*Log, *bytes.Buffer, *time.Time) {
	var out bytes.Buffer
	now := time.Unix(1_800_000_000, 0)
	l := New(slog.New(slog.NewTextHandler(&out, nil)), func() bool { return info })
	l.now = func() time.Time { return now }
	return l, &out, &now
}

func TestInforms(t *testing.T) {
	for _, c := range []struct {
		options options
		want    bool
	}{
		{options{}, false},
		{options{"log_level": "warning"}, false},
		{options{"log_level": "info"}, true},
		{options{"log_level": "debug", "log_level_logfile": "error"}, false},
		{options{"log_level": "warning", "log_level_logfile": "info"}, true},
		{options{"log_level": "quiet"}, false},
		{options{"log_level": "profile"}, true},
	} {
		check.Equal(t, Informs(c.options), c.want, c.options)
	}
}

// The words are those of stock masters: rules for their logs match.
func TestWords(t *testing.T) {
	for _, info := range []bool{false, true} {
		l, out, _ := newLog(info)
		l.SignIn("web1")
		l.Return("web1", "20261121040506000001")
		for _, line := range []string{
			"Authentication request from web1", "Authentication accepted from web1",
			"Got return from web1 for job 20261121040506000001",
		} {
			if strings.Contains(out.String(), line) != info {
				t.Errorf("info %v: %q in %s", info, line, out)
			}
		}
		out.Reset()
		l.Differs("web1", "20261121040506000001", Outcome{"0", "True"}, Outcome{"1", "False"})
		const line = "Duplicate return from minion web1 for jid 20261121040506000001 with a *differing* payload; ignoring the second return. " +
			"This may indicate two minions sharing the same id, a misconfigured returner, or in rare cases a replay attempt. " +
			"Cached retcode=0 success=True; new retcode=1 success=False."
		if !strings.Contains(out.String(), line) || !strings.Contains(out.String(), "level=WARN") {
			t.Errorf("info %v: %s", info, out)
		}
	}
}

// One minion that returns over and over is one line a minute, and its name takes nobody else's line.
func TestWarningsAreBounded(t *testing.T) {
	l, out, now := newLog(false)
	for range 5 {
		l.Differs("web1", "1", Outcome{}, Outcome{})
	}
	l.Differs("web2", "1", Outcome{}, Outcome{})
	check.Equal(t, strings.Count(out.String(), "Duplicate return"), 2, "lines", out)
	*now = now.Add(repeatEvery)
	l.Differs("web1", "2", Outcome{}, Outcome{})
	if !strings.Contains(out.String(), "suppressed=4") {
		t.Errorf("no count in %s", out)
	}
	for i := range 2 * maxRemembered {
		*now = now.Add(time.Millisecond)
		l.Differs(fmt.Sprint("m", i), "3", Outcome{}, Outcome{})
	}
	twins := l.DifferingReturns()
	if len(twins) != maxRemembered || twins[0].Minion != fmt.Sprint("m", 2*maxRemembered-1) {
		t.Errorf("%d minions remembered, %v the latest", len(twins), twins[:1])
	}
	*now = now.Add(rememberFor)
	if twins = l.DifferingReturns(); len(twins) != 0 {
		t.Errorf("still remembered: %v", twins)
	}
}

// A minion that signs with another key, or not at all, is named as a stock master names it.
func TestSignatures(t *testing.T) {
	l, out, _ := newLog(false)
	l.Unsigned("web1")
	l.Forged("web1", true)
	l.Forged("web2", false)
	for line, want := range map[string]bool{
		"_return: Master is requiring minions to sign their messages, but there is no signature in this payload from web1.": true,
		"Failed to verify event signature from minion web1.":                                                                true,
		"drop_messages_signature_fail is enabled, dropping message from web1":                                               true,
		"web2": false, // which is taken all the same
	} {
		if strings.Contains(out.String(), line) != want {
			t.Errorf("%q in %s", line, out)
		}
	}
}

func TestNoLog(t *testing.T) {
	var l *Log
	l.SignIn("web1")
	l.Return("web1", "1")
	l.Differs("web1", "1", Outcome{}, Outcome{})
	l.Unsigned("web1")
	l.Forged("web1", true)
	if l.DifferingReturns() != nil {
		t.Error("twins of nothing")
	}
}
