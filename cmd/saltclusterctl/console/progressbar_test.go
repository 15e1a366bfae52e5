package console

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/sidecar/adminapi"
)

func TestProgressBar(t *testing.T) {
	at := func(percent int, text string) adminapi.Progress {
		return adminapi.Progress{Step: "drain", Message: text, Percent: &percent}
	}
	told := func(width int) string {
		var out bytes.Buffer
		tell := NewProgressBar(&Env{Stderr: &out, width: width})
		tell.ShowStep(at(-5, "two left"))
		tell.ShowStep(at(50, "one left"))
		tell.ShowStep(adminapi.Progress{Step: "wait", Message: "for jobs"})
		tell.ShowStep(at(140, "none\x1b[2J of those that there were"))
		tell.EndBar()
		return out.String()
	}
	pipe := told(0)
	if want := "drain: two left\ndrain: one left\nwait: for jobs\ndrain: none"; !strings.HasPrefix(pipe, want) ||
		strings.Contains(pipe, "\x1b") {
		t.Errorf("a pipe: %q", pipe)
	}
	terminal := told(44)
	for _, want := range []string{
		"\r\x1b[K[........................]   0%  drain: ", "\r\x1b[K[############............]  50%  drain: ",
		"\nwait: for jobs\n", "[########################] 100%  drain: ",
	} {
		check.Contains(t, terminal, want, "a terminal")
	}
	for line := range strings.SplitSeq(strings.ReplaceAll(terminal, "\r\x1b[K", "\n"), "\n") {
		if len(line) >= 44 || strings.Contains(line, "\x1b") {
			t.Errorf("a terminal of 44 columns: %q", line)
		}
	}
}

// TestWaiting: whoever waits for longer than a moment hears what for, once, and not of what is waited for within.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		e := &Env{Stderr: &out}
		e.ShowWaiting("nothing")()
		done := e.ShowWaiting("the %s", "other node")
		e.ShowWaiting("what is within")()
		time.Sleep(2 * silence)
		done()
		check.Equal(t, out.String(), "waiting: the other node\n")
	})
}
