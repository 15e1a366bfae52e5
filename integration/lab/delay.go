package lab

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	delayQueue = 4096  // frames on the way in one direction; more are lost, as in a router
	delayFrame = 65600 // the largest frame, segmentation offload included
)

// delayLine carries frames between a host's port and the bridge through this program, each after its latency. It sits
// in the bridge's namespace: p-<host> (the host's port) <-> us <-> q-<host> = r-<host>, a port of the bridge.
type delayLine struct {
	host    string
	latency atomic.Pointer[Latency]
	fds     []int
	wg      sync.WaitGroup
	closed  chan struct{}
}

type frame struct {
	due  time.Time
	data []byte
}

func newDelayLine(ctx context.Context, sw, host string) (*delayLine, error) {
	l := &delayLine{host: host, closed: make(chan struct{})}
	l.set(Latency{})
	in := "-n " + sw + " "
	if err := ips(ctx,
		in+"link add q-"+host+" type veth peer name r-"+host,
		in+"link set q-"+host+" promisc on up",
		in+"link set p-"+host+" nomaster promisc on",
		in+"link set r-"+host+" master br0 up"); err != nil {
		return nil, err
	}
	err := inNamespace(sw, func() error {
		for _, dev := range []string{"p-" + host, "q-" + host} {
			fd, err := packetSocket(dev)
			if err != nil {
				return fmt.Errorf("open %s: %w", dev, err)
			}
			l.fds = append(l.fds, fd)
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, l.close())
	}
	l.carry(l.fds[0], l.fds[1])
	l.carry(l.fds[1], l.fds[0])
	return l, nil
}

func (l *delayLine) set(by Latency) { l.latency.Store(&by) }

func (l *delayLine) close() error {
	close(l.closed)
	l.wg.Wait() // readers wake up once a second
	var errs []error
	for _, fd := range l.fds {
		errs = append(errs, unix.Close(fd))
	}
	return errors.Join(errs...)
}

// packetSocket sees every frame that arrives on dev. Frames carry their offload state (PACKET_VNET_HDR), so that a
// checksum which the sender has left to the device stays left to the next one.
func packetSocket(dev string) (int, error) {
	proto := binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, unix.ETH_P_ALL))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	ifr, err := unix.NewIfreq(dev)
	if err == nil {
		err = unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, ifr)
	}
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1)
	}
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1)
	}
	if err == nil {
		err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1})
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: proto, Ifindex: int(ifr.Uint32())})
	}
	if err != nil {
		unix.Close(fd)
		return 0, err
	}
	return fd, nil
}

// carry moves frames one way; order is kept, jitter only ever delays the ones behind.
func (l *delayLine) carry(from, to int) {
	queue := make(chan frame, delayQueue)
	l.wg.Go(func() {
		defer close(queue)
		buf := make([]byte, delayFrame)
		for {
			select {
			case <-l.closed:
				return
			default:
			}
			n, _, err := unix.Recvfrom(from, buf, 0)
			if err != nil {
				continue // nothing came for a second, or the device is being removed
			}
			by := *l.latency.Load()
			if by.Loss > 0 && rand.Float64() < by.Loss {
				continue
			}
			if by.Jitter > 0 {
				by.Each += rand.N(by.Jitter)
			}
			select {
			case queue <- frame{time.Now().Add(by.Each), append([]byte(nil), buf[:n]...)}:
			default:
			}
		}
	})
	l.wg.Go(func() {
		for f := range queue {
			if wait := time.Until(f.due); wait > 0 {
				select {
				case <-time.After(wait):
				case <-l.closed:
				}
			}
			_, _ = unix.Write(to, f.data)
		}
	})
}
