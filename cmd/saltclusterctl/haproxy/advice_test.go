package haproxy

import (
	"testing"

	"saltclusterd/integration/require"
)

// TestOlderAdvice: what the guides told to write before there was the verb is still right.
func TestOlderAdvice(t *testing.T) {
	c, err := Parse(`
defaults
    mode tcp
    balance roundrobin
    timeout connect 5s
    timeout check 3s
listen salt-publish
    bind 10.0.0.5:4505
    timeout client 24h
    timeout server 24h
    option httpchk GET /pub
    http-check disable-on-404
    server m1 10.0.0.11:4505 check port 4580 inter 1s fall 2 rise 2 on-marked-down shutdown-sessions
    server m2 10.0.0.12:4505 check port 4580 inter 1s fall 2 rise 2 on-marked-down shutdown-sessions
    server m3 2001:db8::13:4505 check port 4580 inter 1s fall 2 rise 2 on-marked-down shutdown-sessions
listen salt-request
    bind 10.0.0.5:4506
    timeout client 10m
    timeout server 10m
    option httpchk GET /req
    http-check disable-on-404
    server m1 10.0.0.11:4506 check port 4580 inter 1s fall 2 rise 2 on-marked-down shutdown-sessions
    server m2 10.0.0.12:4506 check port 4580 inter 1s fall 2 rise 2 on-marked-down shutdown-sessions
    server m3 2001:db8::13:4506 check port 4580 inter 1s fall 2 rise 2 on-marked-down shutdown-sessions
`)
	require.NoError(t, err)
	f := facts()
	f.Minions = 6
	for _, found := range Judge(c, f) {
		t.Errorf("%+v", found)
	}
}
