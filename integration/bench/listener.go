package main

import (
	"context"
	"errors"
	"hash/fnv"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"saltclusterd/sidecar/zmtp"
)

// listener is one of a crowd.
type listener struct {
	c     net.Conn
	count atomic.Int64  // of what came
	sum   atomic.Uint64 // of everything that came, in order
	here  atomic.Bool   // subscribed
	ended atomic.Bool

	mu       sync.Mutex
	last     time.Time
	silences []silence // of the one that is probed, since it was last asked
	noting   bool
}

// smallRoom is enough for what a subscriber reads at a time: there are thousands of them.
const smallRoom = 4 << 10

func (c *crowd) listen(ctx context.Context, topic string) (*listener, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.addr)
	if err != nil {
		return nil, err
	}
	l := &listener{c: conn}
	hello := zmtp.AppendReady(zmtp.AppendGreeting(nil), "SUB", "")
	hello = zmtp.AppendSubscribe(hello, []byte(topic))
	if _, err := conn.Write(zmtp.AppendPing(hello, 0, nil)); err != nil { // whose answer comes when the subscription counts
		return nil, errors.Join(err, conn.Close())
	}
	c.wg.Go(func() { l.run() })
	return l, nil
}

// run reads until the connection ends.
func (l *listener) run() {
	defer l.ended.Store(true)
	limits := zmtp.DefaultLimits
	dec := zmtp.NewDecoder(&limits)
	room := make([]byte, smallRoom)
	h := fnv.New64a()
	for {
		n, err := l.c.Read(room)
		if err != nil {
			return
		}
		for in := room[:n]; len(in) > 0; {
			ev, used, err := dec.Next(in)
			if err != nil {
				return
			}
			in = in[used:]
			switch {
			case ev.Kind == zmtp.Command && !l.command(&dec, ev.Body):
				return
			case ev.Kind == zmtp.Frame && !ev.More:
				_, _ = h.Write(ev.Body)
				l.note(h.Sum64())
			}
		}
	}
}

// command answers what must be answered.
func (l *listener) command(dec *zmtp.Decoder, body []byte) bool {
	name, data, err := zmtp.ParseCommand(body)
	switch {
	case err != nil:
		return false
	case string(name) == zmtp.CmdReady:
		dec.SetReady()
	case string(name) == zmtp.CmdPong:
		l.here.Store(true)
	case string(name) == zmtp.CmdPing:
		_, text, err := zmtp.ParsePing(data)
		if err != nil {
			return false
		}
		_, err = l.c.Write(zmtp.AppendPong(nil, text))
		return err == nil
	}
	return true
}

func (l *listener) note(sum uint64) {
	now := time.Now()
	l.sum.Store(sum)
	l.count.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.noting && !l.last.IsZero() {
		l.silences = append(l.silences, silence{l.last, now})
	}
	l.last = now
}

// heardOf is every silence since it was last asked for.
func (l *listener) heardOf() []silence {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.silences
	l.silences, l.noting = nil, true
	return all
}
