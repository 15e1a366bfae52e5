package takeover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
)

// ReplacesEnv names the environment variable that tells a program that checks its configuration what the process that
// it is to replace listens on.
const ReplacesEnv = "SALTCLUSTERD_REPLACES"

// Listening is an address that a process listens on.
type Listening struct {
	Network, Addr string
	Purpose       string `json:"-"` // for errors
}

// excludes reports whether l cannot be bound while another process listens on the other address.
func (l Listening) excludes(other Listening) bool {
	switch {
	case l.Network != other.Network:
		return false
	case l.Network == "unix":
		return sameFile(l.Addr, other.Addr)
	}
	return addrsOverlap(l.Addr, other.Addr)
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return a == b || errA == nil && errB == nil && os.SameFile(infoA, infoB)
}

// ParseListening parses the value of ReplacesEnv.
func ParseListening(text string) (had []Listening, err error) {
	if err := json.Unmarshal([]byte(text), &had); err != nil {
		return nil, fmt.Errorf("read %s: %w", ReplacesEnv, err)
	}
	return had, nil
}

// Rehearse binds all addresses at once that the running process does not have, and closes them. What overlaps with an
// address of that process is free after its end, so it is not tried. bindSocket binds the admin socket.
func Rehearse(ctx context.Context, wanted, had []Listening, bindSocket func(context.Context) error) (err error) {
	var open []io.Closer
	defer func() {
		for _, c := range open {
			err = errors.Join(err, c.Close())
		}
	}()
	for _, l := range wanted {
		switch {
		case slices.ContainsFunc(had, l.excludes):
		case l.Network == "unix":
			if err := bindSocket(ctx); err != nil {
				return err
			}
		default:
			c, err := l.bindListening(ctx)
			if err != nil {
				return fmt.Errorf("%s: %w", l.Purpose, err)
			}
			open = append(open, c)
		}
	}
	return nil
}

func (l Listening) bindListening(ctx context.Context) (io.Closer, error) {
	if l.Network == "udp" {
		return (&net.ListenConfig{}).ListenPacket(ctx, l.Network, l.Addr)
	}
	return (&net.ListenConfig{}).Listen(ctx, l.Network, l.Addr)
}
