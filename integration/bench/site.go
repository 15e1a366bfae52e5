package main

import (
	"context"
	"fmt"
	"time"

	"saltclusterd/integration/herd"
	"saltclusterd/integration/lab"
)

const startWithin = 3 * time.Minute

// loadHost is where all load comes from.
const loadHost = "load"

// bareMaster starts a stock master that minions reach directly.
func bareMaster(ctx context.Context, l *lab.Lab, name, version string, minions []*herd.Identity, fleet int) (*target, error) {
	h, err := l.Host(ctx, name)
	if err != nil {
		return nil, err
	}
	from, err := l.Host(ctx, loadHost)
	if err != nil {
		return nil, err
	}
	m, err := h.NewMaster(version, h.Addr)
	if err != nil {
		return nil, err
	}
	if err := accept(m, minions, fleet); err != nil {
		return nil, err
	}
	if err := m.Start(ctx); err != nil {
		return nil, err
	}
	return &target{name: version + " alone", addr: h.Addr + ":4506", from: from, master: m.Process, salt: m}, m.WaitReady(ctx, startWithin)
}

// clusterNode starts a stock master with saltclusterd before it, a cluster of one.
func clusterNode(ctx context.Context, l *lab.Lab, name, version string, minions []*herd.Identity, fleet int) (*target, error) {
	h, err := l.Host(ctx, name)
	if err != nil {
		return nil, err
	}
	from, err := l.Host(ctx, loadHost)
	if err != nil {
		return nil, err
	}
	m, err := h.NewMaster(version, h.Local)
	if err != nil {
		return nil, err
	}
	if err := accept(m, minions, fleet); err != nil {
		return nil, err
	}
	d, err := m.NewDaemon(quiet)
	if err != nil {
		return nil, err
	}
	if err := m.Start(ctx); err != nil {
		return nil, err
	}
	if err := m.WaitReady(ctx, startWithin); err != nil {
		return nil, err
	}
	t := &target{name: version + " behind saltclusterd", addr: h.Addr + ":4506", from: from, daemon: d.Process, master: m.Process, salt: m, socket: d.Socket}
	return t, found(ctx, d)
}

// quiet is how saltclusterd is configured here, beside the lab's own settings.
var quiet = lab.Settings{"log_level": "warning"}

// found starts saltclusterd and gives birth to its cluster.
func found(ctx context.Context, d *lab.Daemon) error {
	if err := d.Start(ctx); err != nil {
		return err
	}
	if err := d.WaitReady(ctx, startWithin); err != nil {
		return err
	}
	if err := d.Bootstrap(ctx); err != nil {
		return fmt.Errorf("bootstrap: %w\n%s", err, d.Tail(15))
	}
	return d.Serving(ctx, startWithin)
}
