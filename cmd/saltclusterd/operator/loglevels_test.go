package operator

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/sidecar/adminapi"
)

func TestLogLevel_SetForATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		level := new(slog.LevelVar)
		d := NewLogLevel(config.DefaultConfig().Log.Level, slog.New(slog.DiscardHandler))
		expect := func(when, want string) {
			t.Helper()
			l, err := d.LogLevel(t.Context())
			if got := fmt.Sprintf("%s %s", l.Level, level.Level()); err != nil || got != want {
				t.Errorf("%s: %s (%v), want %s", when, got, err, want)
			}
		}
		set := func(name string, limit time.Duration) {
			t.Helper()
			if _, err := d.SetLogLevel(t.Context(), adminapi.SetLogLevelRequest{Level: name, For: limit}); err != nil {
				t.Error(err)
			}
		}
		_, err := d.SetLogLevel(t.Context(), adminapi.SetLogLevelRequest{Level: "debug"})
		if adminapi.CodeOf(err) != adminapi.CodeUnavailable {
			t.Errorf("without a level: %v", err)
		}
		d.Control(level)
		expect("at the start", "info INFO")
		set("debug", 10*time.Minute)
		expect("set", "debug DEBUG")
		time.Sleep(5 * time.Minute)
		set("error", 10*time.Minute)
		time.Sleep(6 * time.Minute)
		expect("the first time is over, the second is not", "error ERROR")
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		expect("over", "info INFO")
		set("warning", 0)
		time.Sleep(1000 * time.Hour)
		expect("for ever", "warning WARN")
		set("", 0)
		expect("as configured", "info INFO")
		_, err = d.SetLogLevel(t.Context(), adminapi.SetLogLevelRequest{Level: "loud"})
		if adminapi.CodeOf(err) != adminapi.CodeInvalid {
			t.Errorf("no level: %v", err)
		}
	})
}
