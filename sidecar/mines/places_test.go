package mines

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/saltvalue"
	"saltclusterd/sidecar/saltwire"
)

type nobody struct{}

func (nobody) Accepted(string) (string, bool) { return "", false }
func (nobody) IDs() []string                  { return nil }

func (nobody) Change(context.Context, string, func([]byte) ([]byte, bool, error), time.Duration) error {
	return nil
}

// TestPlaces: as long as there is no place for it, a large load is not taken apart.
func TestPlaces(t *testing.T) {
	broken := append(saltwire.AppendMapHeader(nil, 1), make([]byte, 2*largeLoad)...) // of which a look would tell
	for _, tc := range []struct {
		cmd    string
		places func(*Service) chan struct{}
	}{
		{cmdGet, func(s *Service) chan struct{} { return s.reading }},
		{cmdStore, func(s *Service) chan struct{} { return s.parsing }},
		{cmdDelete, func(s *Service) chan struct{} { return s.parsing }},
	} {
		t.Run(tc.cmd, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := New(Config{Store: nobody{}, Keys: nobody{}})
				require.NoError(t, err)
				s.Use(&Settings{}, "")
				places := tc.places(s)
				for range cap(places) {
					places <- struct{}{}
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- s.Answer(ctx, tc.cmd, "m", broken, func([]byte) { t.Error("answered") }) }()
				synctest.Wait()
				select {
				case err := <-ended:
					t.Fatalf("not waited: %v", err)
				default:
				}
				cancel()
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Errorf("%v, want the end of the wait", err)
				}
				<-places
				if err := s.Answer(t.Context(), tc.cmd, "m", broken, nil); !errors.Is(err, saltvalue.ErrMalformed) {
					t.Errorf("with a place: %v", err)
				}
			})
		})
	}
}
