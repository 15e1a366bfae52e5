package main

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"time"

	"saltclusterd/sidecar/edge"
	"saltclusterd/sidecar/saltwire"
)

const (
	probeEvery = 5 * time.Millisecond
	heard      = "broadcast" // topic of the numbered publications
	probed     = "probe"     // whom the probes are for
)

// probeTopic is what a minion of that name subscribes to when the master filters.
var probeTopic = func() string { sum := sha1.Sum([]byte(probed)); return hex.EncodeToString(sum[:]) }()

// publish publishes probes and, unless probesOnly, numbered messages until ctx ends, and returns the numbers.
func (s *standIn) publish(ctx context.Context, every time.Duration) (numbers []uint64) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	next := time.Now()
	for ctx.Err() == nil {
		<-tick.C
		s.pub.Publish(edge.Publication{Body: s.publication(0)})
		if time.Now().After(next) {
			next = next.Add(every)
			if s.probesOnly.Load() {
				continue
			}
			numbers = append(numbers, uint64(len(numbers)+1))
			s.pub.Publish(edge.Publication{Body: s.publication(numbers[len(numbers)-1])})
		}
	}
	return numbers
}

// publication is what a master sends for a job of the given number to all, 0: for a probe.
func (s *standIn) publication(number uint64) []byte {
	load := saltwire.AppendMapHeader(nil, 6)
	kind := "glob"
	if number == 0 {
		kind = "list"
	}
	for _, kv := range [][2]string{{"fun", "test.ping"}, {"jid", fmt.Sprintf("20260101%012d", number)}, {"tgt_type", kind}, {"ret", ""}} {
		load = saltwire.AppendRaw(saltwire.AppendRaw(load, kv[0]), kv[1])
	}
	const emptyArray, arrayOfOne = 0x90, 0x91
	if load = saltwire.AppendRaw(load, "tgt"); number == 0 {
		load = saltwire.AppendRaw(append(load, arrayOfOne), probed)
	} else {
		load = saltwire.AppendRaw(load, "*")
	}
	load = append(saltwire.AppendRaw(load, "arg"), emptyArray)
	return saltwire.AppendPub(nil, s.crypticle.Seal(nil, load, nil), nil, "")
}
