package main

import (
	"bytes"
	"cmp"
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

// profileFor is how long the processor's time is sampled on each path, a hundred times in each second of it that is used.
const profileFor = 20 * time.Second

// profileRate is the number of forwarded requests a second: at bench.fullRate a profile would have a hundred samples.
const profileRate = 4000

// shares tells what the processor's time of saltclusterd goes to, in milliseconds per operation.
type shares struct {
	name    string
	of      map[string]float64
	sum     float64
	samples int
	heap    []place // functions of the project by the memory that they, and what they call of others, take; bytes
	ours    []place // functions of the project, with all that they call
}

// place is a function and its share of something.
type place struct {
	name string
	of   float64
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
		rows = append(rows, append(row, fmt.Sprintf("%.0f", s.sum*1000), fmt.Sprint(s.samples)))
	}
	b.out.table("Where the time goes", fmt.Sprintf(
		"CPU microseconds of saltclusterd per operation, by what they are spent on as sampled for %s under load (`saltclusterctl profile`). A sign-in over a "+
			"connection of its own; a forwarded request at %d/s to the stand-in; a return of a job of %d minions, its publication and events included.",
		profileFor, profileRate, b.herd), append(head, "all", "samples"), rows)
	for _, s := range all {
		for _, p := range s.ours[:min(len(s.ours), 12)] {
			b.say("%s: %6.0f µs %s", s.name, p.of*1000, p.name)
		}
		for _, p := range s.heap[:min(len(s.heap), 12)] {
			b.say("%s: %6.0f bytes %s", s.name, p.of, p.name)
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
	return b.sample(ctx, "sign-in", t, t.socket, func(ctx context.Context) (int, error) {
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
	return b.sample(ctx, "forwarded request", n.through, n.daemon.Socket, func(ctx context.Context) (int, error) {
		_, err := n.through.flow(ctx, cheapCommand, cheapFields, 100, profileRate, time.Second)
		return profileRate, err
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
	return b.sample(ctx, "return", p.target, p.daemon.Socket, func(ctx context.Context) (int, error) {
		if err := p.job(ctx, &jobCost{}); err != nil {
			return 0, err
		}
		return b.herd, nil
	})
}

// sample takes a profile of a target while load is repeated, which tells how many operations it was. How much of the processor's time an
// operation takes its clock tells, for samples miss short spells of work; they tell what it is spent on.
func (b *bench) sample(ctx context.Context, name string, t *target, socket string, load func(context.Context) (int, error)) (shares, error) {
	if _, err := load(ctx); err != nil { // warms up
		return shares{}, fmt.Errorf("%s: %w", name, err)
	}
	b.say("%s: sampled for %s", name, profileFor)
	client := adminapi.NewClient(socket)
	defer client.Close()
	heap, err := allocated(ctx, client)
	if err != nil {
		return shares{}, err
	}
	before, err := t.cpu()
	if err != nil {
		return shares{}, err
	}
	var file bytes.Buffer
	taken := make(chan error, 1) // waited for on each way out of the loop
	go func() {
		taken <- client.Profile(ctx, adminapi.ProfileQuery{Kind: adminapi.ProfileCPU, For: profileFor}, &file)
	}()
	count := 0
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
			after, err := t.cpu()
			if err != nil {
				return shares{}, err
			}
			s := share(name, p, millis(after.minus(before).daemon)/float64(count))
			more, err := allocated(ctx, client)
			for f, bytes := range more {
				s.heap = append(s.heap, place{f, (bytes - heap[f]) / float64(count)})
			}
			sortPlaces(s.heap)
			return s, err
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

// share sorts samples by kind; all of them are an operation's time, in milliseconds.
func share(name string, p *profile.Profile, all float64) shares {
	s := shares{name: name, of: map[string]float64{}, sum: all}
	ours := map[string]float64{}
	samples := int64(0)
	for _, sample := range p.Sample {
		samples += sample.Value[0]
	}
	s.samples = int(samples)
	for _, sample := range p.Sample {
		ms := all * float64(sample.Value[0]) / float64(samples)
		stack := functions(sample)
		s.of[kindOf(stack)] += ms
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
	sortPlaces(s.ours)
	return s
}

func sortPlaces(all []place) {
	slices.SortFunc(all, func(a, b place) int { return cmp.Or(cmp.Compare(b.of, a.of), strings.Compare(a.name, b.name)) })
}

// allocated tells how many bytes functions of the project have taken since the process began.
func allocated(ctx context.Context, client *adminapi.Client) (map[string]float64, error) {
	var file bytes.Buffer
	if err := client.Profile(ctx, adminapi.ProfileQuery{Kind: adminapi.ProfileHeap}, &file); err != nil {
		return nil, err
	}
	p, err := profile.Parse(&file)
	if err != nil {
		return nil, fmt.Errorf("read the profile: %w", err)
	}
	of := map[string]float64{}
	for _, sample := range p.Sample {
		for _, f := range functions(sample) {
			if strings.HasPrefix(f, "saltclusterd/") {
				of[f] += float64(sample.Value[1]) // alloc_space
				break
			}
		}
	}
	return of, nil
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
