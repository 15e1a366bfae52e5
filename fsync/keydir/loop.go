package keydir

import "context"

type loop struct{ proposer proposer }

type proposer struct{}

func (p *proposer) run(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }

func (d *Dir) newLoop() (*loop, error) { return &loop{}, nil }

func (l *loop) run(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) }
