package main

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestLimitLog_RepeatedMessage(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(1_700_000_000, 0)
	log := slog.New(limitLog(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}),
		func() time.Time { return now }))
	lines := func() int { defer out.Reset(); return strings.Count(out.String(), "\n") }
	for i := range 1000 {
		log.With("from", i).WithGroup("g").Warn("flood", "i", i)
	}
	if n := lines(); n != logBurst {
		t.Errorf("%d lines of one message, want %d", n, logBurst)
	}
	log.Error("something else")
	log.Error("flood") // of another level
	if n := lines(); n != 2 {
		t.Errorf("%d lines of others, want 2", n)
	}
	now = now.Add(logEvery)
	log.Warn("flood")
	log.Warn("flood")
	if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "suppressed=900") {
		t.Errorf("after a while: %q", text)
	}
	out.Reset()
	now = now.Add(logSummary)
	log.Info("life goes on")
	if text := out.String(); !strings.Contains(text, `msg="log lines left out" message=flood suppressed=1`) {
		t.Errorf("what was left out last is not told: %q", text)
	}
	out.Reset()
	for range 1000 {
		log.Debug("detail")
	}
	if n := lines(); n != 1000 {
		t.Errorf("%d of 1000 lines of debugging", n)
	}
}

func TestLogMessagesRememberedAreBounded(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	var out bytes.Buffer
	h := limitLog(slog.NewTextHandler(&out, nil), func() time.Time { return now })
	log := slog.New(h)
	for i := range 10 * logTexts {
		log.Info(fmt.Sprint("text ", i))
	}
	if n := len(h.(*limitHandler).shared.texts); n > logTexts+1 {
		t.Errorf("%d messages remembered", n)
	}
	if n := strings.Count(out.String(), "\n"); n > logTexts+logBurst {
		t.Errorf("%d lines", n)
	}
}
