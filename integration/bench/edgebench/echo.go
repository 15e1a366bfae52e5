package main

import (
	"fmt"
	"time"
)

const echoHead = `
## Echo through the request port

| clients | libzmq ROUTER req/s | edge req/s | ratio | p99 ms libzmq | p99 ms edge | ratio | CPU µs/req libzmq | edge |
|---|---|---|---|---|---|---|---|---|
`

// echoResult is one measurement of one server.
type echoResult struct {
	rate, p99 float64 // requests per second, seconds
	cpu       float64 // µs per request
}

func (b *bench) echo(clients int) error {
	var theirs, ours series
	for range b.o.rounds {
		for _, s := range []*series{&theirs, &ours} {
			r, err := b.echoOnce(clients, s == &ours)
			if err != nil {
				return err
			}
			s.add(r.rate, r.p99*1e3, r.cpu)
		}
	}
	fmt.Printf("| %d | %s | %s | **%s** | %s | %s | **%s** | %s | %s |\n", clients,
		theirs.show(0, "%.0f"), ours.show(0, "%.0f"), ratio(&ours, &theirs, 0),
		theirs.show(1, "%.1f"), ours.show(1, "%.1f"), ratio(&ours, &theirs, 1),
		theirs.show(2, "%.1f"), ours.show(2, "%.1f"))
	return nil
}

func (b *bench) echoOnce(clients int, ours bool) (r echoResult, err error) {
	srv, port, err := b.server("req", ours)
	if err != nil {
		return r, err
	}
	defer srv.stop()
	cl, err := start(b.ctx, b.load, "req", port, fmt.Sprint(clients), fmt.Sprint(b.o.seconds), "200")
	if err != nil {
		return r, err
	}
	defer cl.stop()
	before := srv.cpu()
	if err := cl.say("go"); err != nil {
		return r, err
	}
	line, err := cl.line()
	if err != nil {
		return r, err
	}
	used := srv.cpu() - before
	var done, took, p50 float64
	if _, err := fmt.Sscan(line, &done, &took, &p50, &r.p99); err != nil {
		return r, err
	}
	r.rate = done / took
	r.cpu = float64(used/time.Microsecond) / done
	return r, nil
}
