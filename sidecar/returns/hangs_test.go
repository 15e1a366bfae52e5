package returns

import (
	"errors"
	"os"
	"testing"
	"time"

	"saltclusterd/integration/patience"
	"saltclusterd/sidecar/spool"
)

// hanging is a service whose journals' disk does not answer before the function is called.
func (w *world) hanging() (s *Service, answer func()) {
	answers := make(chan struct{})
	s = w.open("a", func(c *Config) {
		c.hang = 20 * time.Millisecond
		c.disk.Sync = func(f *os.File) error {
			<-answers
			return f.Sync()
		}
	})
	return s, func() { close(answers) }
}

// TestLateReturn: the journal has refused a return because the disk did not answer, and has it after all. Its copy,
// which another node kept meanwhile, is not taken once more.
func TestLateReturn(t *testing.T) {
	for name, c := range map[string]struct {
		take    func(s *Service, r Request, done func([]byte, error))
		journal func(s *Service) *journal
	}{
		"own":     {(*Service).Take, func(s *Service) *journal { return s.own }},
		"python":  {(*Service).Defer, func(s *Service) *journal { return s.python }},
		"another": {func(s *Service, r Request, done func([]byte, error)) { s.Keep("b", r, done) }, keptForB},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s, answer := w.hanging()
			r := request(t, "web1")
			if _, err := take(t, func(f func([]byte, error)) { c.take(s, r, f) }); !errors.Is(err, spool.ErrHangs) {
				t.Errorf("error %v", err)
			}
			answer()
			j := c.journal(s)
			patience.WaitFor(t, "it is on disk", func() bool { return j.spool.Stats().Appended == 1 })
			must(t, func(f func([]byte, error)) { c.take(s, r, f) })
			if name != "another" {
				rec := spool.Record{Received: r.Received, Minion: r.Minion, JID: r.JID, From: "b", To: "a", Load: r.Load}
				if err := s.acceptRecord(t.Context(), rec, "_syndic_return"); !errors.Is(err, errKnown) {
					t.Errorf("its copy: %v", err)
				}
			}
			if n := j.spool.Stats().Appended; n != 1 {
				t.Errorf("taken %d times", n)
			}
		})
	}
}

func keptForB(s *Service) *journal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept["b"]
}

// TestLateForPython: what turned out to need Python is handed to the master once, though the disk does not answer in
// time.
func TestLateForPython(t *testing.T) {
	w := newWorld(t)
	s, answer := w.hanging()
	r := request(t, "web1")
	rec := spool.Record{Received: r.Received, Minion: r.Minion, JID: r.JID, Load: r.Load}
	if err := s.toPython(t.Context(), rec); !errors.Is(err, spool.ErrHangs) {
		t.Errorf("error %v", err)
	}
	answer()
	patience.WaitFor(t, "it is on disk", func() bool { return s.python.spool.Stats().Appended == 1 })
	if err := s.toPython(t.Context(), rec); err != nil {
		t.Error(err)
	}
	if n := s.python.spool.Stats().Appended; n != 1 {
		t.Errorf("kept %d times", n)
	}
	patience.WaitFor(t, "the master", func() bool { return pending(s, pythonName) == 0 })
}

// TestTakenByAnother: what the master has answered is known, also when the journal that is to take it fails.
func TestTakenByAnother(t *testing.T) {
	s := newWorld(t).service("a")
	r := request(t, "web1")
	key := s.window.Key(r.Minion, r.Load)
	if !s.window.Claim(key, nil) {
		t.Fatal("known already")
	}
	s.Answered(r.Minion, r.Load)
	s.window.Settle(key, spool.ErrHangs)
	must(t, func(f func([]byte, error)) { s.Take(r, f) })
}
