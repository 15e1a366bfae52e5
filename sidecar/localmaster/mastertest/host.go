package mastertest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// freeHost finds a loopback address on which no process listens on the ports, so that parallel tests, and a Salt of the
// machine itself, do not collide.
func freeHost(t testing.TB, ports ...int) string {
	t.Helper()
	for range 50 {
		host := fmt.Sprintf("127.%d.%d.%d", 2+rand.IntN(250), rand.IntN(256), 1+rand.IntN(254))
		if portsFree(host, ports) {
			return host
		}
	}
	t.Fatal("no free loopback address found")
	return ""
}

func portsFree(host string, ports []int) bool {
	for _, port := range ports {
		l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", host, port))
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}
