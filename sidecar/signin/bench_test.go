package signin

import (
	"testing"
	"time"
)

// accepted returns a function that signs a minion in whose key is accepted, from the parsed request to the reply.
func accepted(t testing.TB) (signIn func()) {
	c := newCluster(t)
	auth := c.request(t)
	c.standing = Standing{Pub: auth.Pub, Known: true, Accepted: true}
	done := make(chan bool, 1)
	return func() {
		c.svc.Serve(&Request{
			Auth: auth, Reply: func([]byte) { done <- true }, Drop: func() { done <- false },
			Gone: func() bool { return false }, At: time.Now(),
		})
		if !<-done {
			t.Fatal("dropped")
		}
	}
}

func BenchmarkSignIn(b *testing.B) {
	signIn := accepted(b)
	b.ReportAllocs()
	for b.Loop() {
		signIn()
	}
}

func TestAllocations(t *testing.T) {
	const ceiling = 40.
	signIn := accepted(t)
	signIn()
	n := testing.AllocsPerRun(50, signIn)
	t.Logf("%.0f allocations", n)
	if n > ceiling {
		t.Errorf("%.0f allocations, at most %.0f", n, ceiling)
	}
}
