package admin

import (
	"context"
	"io"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
)

// fakeBackend answers with fixed values, or what its func fields say.
type fakeBackend struct {
	status    func(context.Context) (adminapi.Status, error)
	bootstrap func(context.Context, adminapi.BootstrapRequest, Progress) (adminapi.Outcome, error)
	join      func(context.Context, adminapi.JoinRequest, Progress) (adminapi.Outcome, error)
	remove    func(context.Context, adminapi.RemoveRequest, Progress) (adminapi.Outcome, error)
	transfer  func(context.Context, adminapi.TransferRequest, Progress) (adminapi.Outcome, error)
	recover   func(context.Context, adminapi.RecoverRequest, Progress) (adminapi.Outcome, error)
	save      func(io.Writer) error
	ringQuery adminapi.RingQuery
}

func (f *fakeBackend) Version(context.Context) (adminapi.Version, error) {
	return adminapi.Version{Node: "m1", Version: "0.1.0", API: adminapi.APIVersion}, nil
}

func (f *fakeBackend) Status(ctx context.Context) (adminapi.Status, error) {
	if f.status != nil {
		return f.status(ctx)
	}
	return adminapi.Status{Node: adminapi.Node{ID: "m1"}}, nil
}

func (f *fakeBackend) Members(context.Context) (adminapi.Members, error) {
	return adminapi.Members{From: "m1", Members: []adminapi.Member{{ID: "m1", Role: adminapi.RoleVoter}}}, nil
}

func (f *fakeBackend) RingInfo(_ context.Context, q adminapi.RingQuery) (adminapi.RingInfo, error) {
	f.ringQuery = q
	return adminapi.RingInfo{Owner: &adminapi.RingOwner{Kind: adminapi.KeyMinion, Key: q.Minion, Node: "m1"}}, nil
}

func (f *fakeBackend) Config(context.Context) (adminapi.Config, error) {
	return adminapi.Config{Files: []string{"/etc/salt/saltclusterd"}}, nil
}

func (f *fakeBackend) Minions(context.Context) (adminapi.Minions, error) {
	return adminapi.Minions{From: "m1"}, nil
}

func (f *fakeBackend) Bootstrap(ctx context.Context, r adminapi.BootstrapRequest,
	p Progress) (adminapi.Outcome, error) {
	return f.bootstrap(ctx, r, p)
}

func (f *fakeBackend) Drain(ctx context.Context, r adminapi.DrainRequest, p Progress) (adminapi.Outcome, error) {
	p("drain", r.Node)
	return adminapi.Outcome{Node: r.Node, Message: "drained"}, ctx.Err()
}

func (f *fakeBackend) Undrain(ctx context.Context, r adminapi.UndrainRequest, p Progress) (adminapi.Outcome, error) {
	p("undrain", r.Node)
	return adminapi.Outcome{Node: r.Node, Message: "serving"}, ctx.Err()
}

func (f *fakeBackend) Join(ctx context.Context, r adminapi.JoinRequest, p Progress) (adminapi.Outcome, error) {
	return f.join(ctx, r, p)
}

func (f *fakeBackend) Remove(ctx context.Context, r adminapi.RemoveRequest, p Progress) (adminapi.Outcome, error) {
	return f.remove(ctx, r, p)
}

func (f *fakeBackend) Transfer(ctx context.Context, r adminapi.TransferRequest, p Progress) (adminapi.Outcome, error) {
	return f.transfer(ctx, r, p)
}

func (f *fakeBackend) Rotate(context.Context, adminapi.RotateRequest, Progress) (adminapi.Outcome, error) {
	return adminapi.Outcome{}, nil
}

// start opens a server on a fresh socket and returns a client of it.
func start(t *testing.T, b any, change ...func(*Config)) (*Server, *adminapi.Client) {
	t.Helper()
	cfg := Config{Socket: filepath.Join(t.TempDir(), "run", "admin.sock"), Verbs: VerbsOf(b)}
	for _, f := range change {
		f(&cfg)
	}
	s, err := New(cfg)
	require.NoError(t, err)
	require.NoError(t, s.Open(t.Context()))
	client := adminapi.NewClient(cfg.Socket)
	t.Cleanup(func() {
		client.Close()
		check.NoError(t, s.Close(), "close")
	})
	return s, client
}

func receive[T any](t *testing.T, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(10 * time.Second):
		t.Fatalf("%s did not happen", what)
		panic("unreachable")
	}
}

func (f *fakeBackend) RecoverPlan(context.Context) (adminapi.RecoverPlan, error) {
	return adminapi.RecoverPlan{Node: "m1", Rev: 3}, nil
}

func (f *fakeBackend) Recover(ctx context.Context, r adminapi.RecoverRequest, p Progress) (adminapi.Outcome, error) {
	return f.recover(ctx, r, p)
}

func (f *fakeBackend) SaveSnapshot(_ context.Context, w io.Writer) error {
	if f.save != nil {
		return f.save(w)
	}
	_, err := io.WriteString(w, "SNAPSHOT")
	return err
}

func (f *fakeBackend) RestoreSnapshot(_ context.Context, r adminapi.RestoreRequest, file io.Reader,
	p Progress) (adminapi.Outcome, error) {
	b, err := io.ReadAll(file)
	p("state", "reading")
	return adminapi.Outcome{Node: "m1", Ready: r.Wait, Message: strconv.Itoa(len(b))}, err
}

// VerbsOf is admintest.Verbs, which this package cannot import.
var VerbsOf func(fake any) []Verbs
