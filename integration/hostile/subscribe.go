package hostile

import (
	"context"
	"net"
	"strings"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/sidecar/presence"
	"saltclusterd/sidecar/zmtp"
)

const (
	// subscribers is the number from which on those of subscribers are: no request has one of them.
	subscribers = 1 << 40
	// subscribeEvery is how often another one comes, stayed how long one stays at most.
	subscribeEvery, stayed = 200 * time.Millisecond, 3 * time.Second
)

// frames are what a subscriber of 4505 says once it has shaken hands: subscriptions to what others are told, too many
// of them and too long ones, the end of some that never began, and what is none.
func (d *dice) frames() (all [][]byte) {
	for range 1 + d.IntN(20) {
		topic := one(d, "", presence.Hash(d.other()), presence.Hash(d.who.own), d.mark(), "syndic", "\x00",
			strings.Repeat(d.mark(), 1+d.IntN(3000)), d.other(), "*")
		all = append(all, []byte(one(d, "\x01", "\x01", "\x01", "\x00", "\x02", "\xff", "")+topic))
	}
	if d.in(10) {
		for n := range 3000 {
			all = append(all, []byte("\x01"+presence.Hash(strings.Repeat("x", n%200))+d.mark()))
		}
	}
	return all
}

// subscribe has subscribers come and go at 4505 of all nodes until ctx ends. What they do to anybody is for the other
// invariants to show.
func (w *world) subscribe(ctx context.Context) {
	tick := time.NewTicker(subscribeEvery)
	defer tick.Stop()
	came, cut := 0, 0
	for ; ; came++ {
		select {
		case <-ctx.Done():
			w.book.note("%d subscribers, %d of them were cut off", came, cut)
			return
		case <-tick.C:
		}
		d := w.scene.dice(subscribers + came)
		if w.subscriber(ctx, d, w.cluster.Nodes[d.IntN(len(w.cluster.Nodes))]) != nil && ctx.Err() == nil {
			cut++
		}
	}
}

// subscriber is one of them. It sends its frames, and one in three then waits for a message until its time is over.
func (w *world) subscriber(ctx context.Context, d *dice, n *lab.Node) error {
	ctx, cancel := context.WithTimeout(ctx, connects)
	defer cancel()
	conn, err := w.who.dialer.Dial(ctx, net.JoinHostPort(n.Addr, "4505"))
	if err != nil {
		return err
	}
	z, err := zmtp.NewClient(ctx, conn, zmtp.ClientOptions{SocketType: one(d, "SUB", "SUB", "XSUB"),
		Limits: zmtp.DefaultLimits})
	if err != nil {
		return err
	}
	defer z.Close()
	_ = conn.SetDeadline(time.Now().Add(stayed))
	for _, frame := range d.frames() {
		if d.in(20) {
			frame = zmtp.AppendMessage(nil, frame, nil, []byte(d.mark()))
			_, err = conn.Write(append([]byte("\x04\x0e\x09SUBSCRIBEevil"), frame...))
		} else {
			err = z.WriteMessage(frame)
		}
		if err != nil {
			return err
		}
	}
	if d.in(3) { // and waits
		if _, err = z.ReadMessage(); timeout(err) {
			err = nil
		}
	}
	return err
}
