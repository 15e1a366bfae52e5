package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/pprof/profile"

	"saltclusterd/integration/lab"
	"saltclusterd/sidecar/adminapi"
)

// profileFor is how long the processor's time is sampled on each path, at 100 samples a second.
const profileFor = 10 * time.Second

// shares tells what the processor's time of saltclusterd goes to, in milliseconds per operation.
type shares struct {
	name string
	of   map[string]float64
	sum  float64
	ours []place // functions of the project, with all that they call
}

type place struct {
	name string
	ms   float64
}

// profiles tells where saltclusterd spends its time on the three hottest paths.
func (b *bench) profiles(ctx context.Context) error {
	var all []shares
	for _, path := range []func(context.Context, *lab.Lab) (shares, error){b.profileSignIns, b.profileForward, b.profileReturns} {
		err := b.inLab(ctx, func(ctx context.Context, l *lab.Lab) error {
			s, err := path(ctx, l)
			all = append(all, s)
			return err
		})
		if err != nil {
			return err
		}
	}
	head := append([]string{"path"}, kindNames()...)
	var rows [][]string
	for _, s := range all {
		row := []string{s.name}
		for _, k := range kindNames() {
			row = append(row, fmt.Sprintf("%.0f", s.of[k]*1000))
		}
		rows = append(rows, append(row, fmt.Sprintf("%.0f", s.sum*1000)))
	}
	b.out.table("Where the time goes", fmt.Sprintf(
		"CPU microseconds of saltclusterd per operation by what they are spent on, as sampled for %s under load (`saltclusterctl profile`). A sign-in over a "+
			"connection of its own; a forwarded request at %d/s to the stand-in; a return of a job of %d minions, its publication and events included.",
		profileFor, b.fullRate, b.herd), append(head, "all"), rows)
	for _, s := range all {
		for _, p := range s.ours[:min(len(s.ours), 12)] {
			b.say("%s: %6.0f µs %s", s.name, p.ms*1000, p.name)
		}
	}
	return nil
}

func (b *bench) profileSignIns(ctx context.Context, l *lab.Lab) (shares, error) {
	minions, err := newMinions(b.minions)
	if err != nil {
		return shares{}, err
	}
	t, err := clusterNode(ctx, l, "ours", "3006.28", minions, b.fleet)
	if err != nil {
		return shares{}, err
	}
	if err := t.enroll(ctx, minions); err != nil {
		return shares{}, err
	}
	return b.sample(ctx, "sign-in", t.socket, func(ctx context.Context) (int, error) {
		all, err := t.prepare(minions, b.signIns)
		if err != nil {
			return 0, err
		}
		return len(all), t.signIns(ctx, all, atATime)
	})
}

func (b *bench) profileForward(ctx context.Context, l *lab.Lab) (shares, error) {
	n, err := b.standInNode(ctx, l)
	if err != nil {
		return shares{}, err
	}
	defer n.standIn.close()
	return b.sample(ctx, "forwarded request", n.daemon.Socket, func(ctx context.Context) (int, error) {
		_, err := n.through.flow(ctx, cheapCommand, cheapFields, 100, b.fullRate, time.Second)
		return b.fullRate, err
	})
}

func (b *bench) profileReturns(ctx context.Context, l *lab.Lab) (shares, error) {
	p, err := clusterPack(ctx, l, "3006.28", b.herd, 0)
	if err != nil {
		return shares{}, err
	}
	defer p.close()
	if err := p.gather(ctx, b.say); err != nil {
		return shares{}, err
	}
	return b.sample(ctx, "return", p.daemon.Socket, func(ctx context.Context) (int, error) {
		if err := p.job(ctx, &jobCost{}); err != nil {
			return 0, err
		}
		return b.herd, p.calm(ctx, b.say)
	})
}

// sample takes a profile while load is repeated, which tells how many operations it was.
func (b *bench) sample(ctx context.Context, name, socket string, load func(context.Context) (int, error)) (shares, error) {
	if _, err := load(ctx); err != nil { // warms up
		return shares{}, fmt.Errorf("%s: %w", name, err)
	}
	b.say("%s: sampled for %s", name, profileFor)
	client := adminapi.NewClient(socket)
	defer client.Close()
	var file bytes.Buffer
	taken := make(chan error, 1)
	go func() {
		taken <- client.Profile(ctx, adminapi.ProfileQuery{Kind: adminapi.ProfileCPU, For: profileFor}, &file)
	}()
	count := 0
	began := time.Now()
	for {
		n, err := load(ctx)
		if err != nil {
			return shares{}, errors.Join(fmt.Errorf("%s: %w", name, err), <-taken)
		}
		count += n
		select {
		case err := <-taken:
			if err != nil {
				return shares{}, err
			}
			p, err := profile.Parse(&file)
			if err != nil {
				return shares{}, fmt.Errorf("%s: read the profile: %w", name, err)
			}
			done := float64(count) * profileFor.Seconds() / time.Since(began).Seconds() // while it was taken
			return share(name, p, done), nil
		default:
		}
	}
}

// kind is something that time is spent on. A sample belongs to the first kind of which a function is in its stack, or is its innermost one.
type kind struct {
	name     string
	inner    []string // beginnings of names of the innermost function
	anywhere []string // of any
}

var kinds = []kind{
	{name: "RSA", anywhere: []string{"crypto/rsa.", "crypto/internal/fips140/rsa.", "saltclusterd/sidecar/saltcrypt/libcrypto."}},
	{name: "system calls", inner: []string{"internal/runtime/syscall", "syscall.", "runtime.cgocall", "runtime.vdso"}},
	{name: "memory", anywhere: []string{"runtime.mallocgc", "runtime.gcBgMarkWorker", "runtime.gcAssist", "runtime.bgsweep", "runtime.bgscavenge", "runtime.gcStart", "runtime.growslice", "runtime.newstack"}},
	{name: "goroutines", anywhere: []string{"runtime.schedule", "runtime.mcall", "runtime.findRunnable", "runtime.goready", "runtime.ready", "runtime.futex", "runtime.netpoll", "runtime.sysmon", "runtime.wakep", "runtime.mstart", "runtime.lock2", "runtime.unlock2", "runtime.selectgo", "runtime.chansend", "runtime.chanrecv", "runtime.gopark", "time."}},
	{name: "AES, HMAC, hashes", anywhere: []string{"crypto/"}},
	{name: "Salt's formats", anywhere: []string{"saltclusterd/sidecar/saltwire", "saltclusterd/sidecar/saltvalue", "saltclusterd/fsync/msgpack"}},
	{name: "ZeroMQ", anywhere: []string{"saltclusterd/sidecar/zmtp", "saltclusterd/sidecar/edge"}},
}

const restOfKinds = "the rest"

func kindNames() (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return append(names, restOfKinds)
}

// share sorts samples by kind, for operations that were done meanwhile.
func share(name string, p *profile.Profile, operations float64) shares {
	s := shares{name: name, of: map[string]float64{}}
	ours := map[string]float64{}
	for _, sample := range p.Sample {
		ms := float64(sample.Value[1]) / 1e6 / operations // nanoseconds
		stack := functions(sample)
		s.of[kindOf(stack)] += ms
		s.sum += ms
		slices.Sort(stack)
		for _, f := range slices.Compact(stack) {
			if strings.HasPrefix(f, "saltclusterd/") {
				ours[f] += ms
			}
		}
	}
	for f, ms := range ours {
		s.ours = append(s.ours, place{f, ms})
	}
	slices.SortFunc(s.ours, func(a, b place) int {
		switch {
		case a.ms > b.ms:
			return -1
		case a.ms < b.ms:
			return 1
		}
		return strings.Compare(a.name, b.name)
	})
	return s
}

// functions are those of a sample, the innermost one first.
func functions(s *profile.Sample) (names []string) {
	for _, loc := range s.Location {
		for _, line := range loc.Line {
			if line.Function != nil {
				names = append(names, line.Function.Name)
			}
		}
	}
	return names
}

func kindOf(stack []string) string {
	begins := func(f string, with []string) bool {
		return slices.ContainsFunc(with, func(w string) bool { return strings.HasPrefix(f, w) })
	}
	for _, k := range kinds {
		if len(stack) > 0 && begins(stack[0], k.inner) || slices.ContainsFunc(stack, func(f string) bool { return begins(f, k.anywhere) }) {
			return k.name
		}
	}
	return restOfKinds
}
