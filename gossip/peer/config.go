package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/gossip/node"
)

// Config is what a Port needs. Listen, Identity and Roster are required.
type Config struct {
	Listen    string // host:port to bind (tcp); the host may be a wildcard
	Advertise string // ip:port others reach us on; empty: see ResolveAdvertise
	Identity  *Identity
	Roster    Roster
	Handler   http.Handler // peer RPC; nil: every path answers 404
	Join      JoinHandler  // nil: joins are refused
	// Standing answers AskStanding of others; nil: no node is answered. It must not take long.
	Standing func(id node.ID, fp node.Fingerprint) Standing
	// ListenWith gives the listener; nil: it is made.
	ListenWith func(ctx context.Context, network, addr string) (net.Listener, error)
	Logger     *slog.Logger // nil: nothing is logged
	Registerer prometheus.Registerer
	Limits     Limits
}

// Limits bounds what peers may cost. Zero fields get the default.
type Limits struct {
	Handshake         time.Duration // for a TLS handshake, and for dialling altogether; 5 s
	Handshakes        int           // at the same time, from addresses other than members'; 128
	HandshakesPerAddr int           // of these from one address (IPv6: one /64); 16
	MemberHandshakes  int           // at the same time from one member's address; 64
	ConnsPerNode      int           // open connections of one certificate, per direction; 256
	RPCConnsPerNode   int           // of these, inbound ones for peer RPC, which carry many requests each; 64
	Tunnels           int           // open ones of one member through this node to others; 32
	Queue             int           // admitted connections of one protocol waiting for Accept; 32
	Joins             int           // joins with a right proof at the same time; 8
	JoinProof         time.Duration // until both proofs are done; 5 s
	JoinAdmit         time.Duration // for JoinHandler.Admit (a consensus round); 30 s
	Sweep             time.Duration // between two comparisons of open connections with the roster; 1 s
}

func (l Limits) withDefaults() Limits {
	durations := map[*time.Duration]time.Duration{
		&l.Handshake: 5 * time.Second, &l.JoinProof: 5 * time.Second, &l.JoinAdmit: 30 * time.Second, &l.Sweep: time.Second,
	}
	for p, v := range durations {
		if *p <= 0 {
			*p = v
		}
	}
	counts := map[*int]int{
		&l.Handshakes: 128, &l.HandshakesPerAddr: 16, &l.MemberHandshakes: 64, &l.ConnsPerNode: 256, &l.RPCConnsPerNode: 64,
		&l.Tunnels: 32, &l.Queue: 32, &l.Joins: 8,
	}
	for p, v := range counts {
		if *p <= 0 {
			*p = v
		}
	}
	return l
}

func (c Config) validate() error {
	var errs []error
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		errs = append(errs, fmt.Errorf("peer listen address %q: %w", c.Listen, err))
	}
	if c.Identity == nil {
		errs = append(errs, errors.New("peer: no identity"))
	}
	if c.Roster == nil {
		errs = append(errs, errors.New("peer: no roster"))
	}
	return errors.Join(errs...)
}

// ResolveAdvertise returns the address to put into the roster for a node which listens on listen and was configured
// with advertise (option cluster_advertise; may be empty). A missing advertise is taken from listen when that is one
// address, or else from the host's only usable address; when there are several it is an error that names the option.
func ResolveAdvertise(listen, advertise string) (netip.AddrPort, error) {
	return resolveAdvertise(listen, advertise, net.InterfaceAddrs)
}
