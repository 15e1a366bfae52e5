package peer

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"saltclusterd/integration/require"
)

// TestRace lets attempts end one after the other, or never.
func TestRace(t *testing.T) {
	refused := errors.New("refused")
	for name, tc := range map[string]struct {
		outcome func(attempt int) (after time.Duration, err error)
		want    error
		took    time.Duration
	}{
		"the first succeeds": {func(int) (time.Duration, error) { return 10 * time.Millisecond, nil }, nil,
			10 * time.Millisecond},
		"the link comes back during the third": {func(n int) (time.Duration, error) {
			if n < 3 {
				return time.Hour, nil
			}
			return time.Millisecond, nil
		}, nil, 2*connectAgain + time.Millisecond},
		"a slow peer answers the first": {func(n int) (time.Duration, error) { return time.Second, nil }, nil, time.Second},
		"refused": {func(int) (time.Duration, error) { return time.Millisecond, refused }, refused,
			time.Millisecond},
		"never": {func(int) (time.Duration, error) { return time.Hour, nil },
			context.DeadlineExceeded, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				attempts := make(chan int, 100)
				attempts <- 1
				c, err := raceDials(ctx, func(ctx context.Context) (net.Conn, error) {
					n := <-attempts
					attempts <- n + 1
					after, err := tc.outcome(n)
					select {
					case <-time.After(after):
						a, b := net.Pipe()
						return a, errors.Join(err, b.Close())
					case <-ctx.Done():
						return nil, ctx.Err()
					}
				})
				if !errors.Is(err, tc.want) || err == nil && c == nil {
					t.Errorf("race: %v, want %v", err, tc.want)
				}
				if took := time.Since(began); took != tc.took {
					t.Errorf("took %s, want %s", took, tc.took)
				}
			})
		})
	}
}

func TestConnect_LimitsWhatRaftWrites(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	for proto, want := range map[string]int{ProtoRaft: int(unackedMax.Milliseconds()), ProtoHTTP: 0} {
		c, err := connectTCP(t.Context(), netip.MustParseAddrPort(ln.Addr().String()), proto)
		require.NoError(t, err)
		raw, err := c.(syscall.Conn).SyscallConn()
		require.NoError(t, err)
		got := 0
		if err := raw.Control(func(fd uintptr) {
			got, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)
		}); err != nil || got != want {
			t.Errorf("%s: TCP_USER_TIMEOUT %d, want %d (%v)", proto, got, want, err)
		}
		_ = c.Close()
	}
}
