package signin

import (
	"testing"
	"time"
)

// BenchmarkSignIn answers sign-ins of an accepted key, from the parsed request to the reply.
func BenchmarkSignIn(b *testing.B) {
	c := newCluster(b)
	auth := c.request(b)
	c.standing = Standing{Pub: auth.Pub, Known: true, Accepted: true}
	done := make(chan bool, 1)
	b.ReportAllocs()
	for b.Loop() {
		c.svc.Serve(&Request{
			Auth: auth, Reply: func([]byte) { done <- true }, Drop: func() { done <- false },
			Gone: func() bool { return false }, At: time.Now(),
		})
		if !<-done {
			b.Fatal("dropped")
		}
	}
}
