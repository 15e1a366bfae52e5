package config

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"saltclusterd/integration/check"
)

func TestSplitHostPort(t *testing.T) {
	tests := []struct {
		in, host string
		port     int
	}{
		{"m2", "m2", 9},
		{"m2.example.com.", "m2.example.com.", 9},
		{"m2:4520", "m2", 4520},
		{"10.0.0.1", "10.0.0.1", 9},
		{"10.0.0.1:1", "10.0.0.1", 1},
		{"::1", "::1", 9},
		{"[::1]:7", "::1", 7},
		{"fe80::1%eth0", "fe80::1%eth0", 9},
	}
	for _, tt := range tests {
		if host, port, err := SplitHostPort(tt.in, 9); err != nil || host != tt.host || port != tt.port {
			t.Errorf("%q = %q %d %v", tt.in, host, port, err)
		}
	}
	for _, in := range []string{"", ":4520", "m2:", "m2:0", "m2:65536", "m2:x", "a b", "-m2", "m2/24", "[::1]", "a..b",
		strings.Repeat("x", 64), "é"} {
		if host, port, err := SplitHostPort(in, 9); err == nil {
			t.Errorf("%q = %q %d", in, host, port)
		}
	}
}

func TestEdgeAddressesAndAdvertise(t *testing.T) {
	var local []netip.Addr
	for _, s := range []string{"127.0.0.1", "::1", "fe80::1%eth0", "10.0.0.11", "2001:db8::11"} {
		local = append(local, netip.MustParseAddr(s))
	}
	tests := []struct {
		name      string
		change    func(*Config)
		pub       []string
		advertise string
	}{
		{"own addresses", func(*Config) {}, []string{"10.0.0.11:4505", "[2001:db8::11]:4505"}, "10.0.0.11:4520"},
		{"configured", func(c *Config) { c.Edge.Interface = []string{"127.0.0.2"} }, []string{"127.0.0.2:4505"},
			"127.0.0.2:4520"},
		{"peer interface", func(c *Config) { c.Cluster.Interface = "10.9.0.1" },
			[]string{"10.0.0.11:4505", "[2001:db8::11]:4505"}, "10.9.0.1:4520"},
		{"advertise", func(c *Config) { c.Cluster.Advertise = "10.8.0.1:7" },
			[]string{"10.0.0.11:4505", "[2001:db8::11]:4505"}, "10.8.0.1:7"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := DefaultConfig()
			tt.change(&c)
			pub, req := c.EdgeAddresses(local)
			if !reflect.DeepEqual(pub, tt.pub) || len(req) != len(pub) || !strings.HasSuffix(req[0], ":4506") {
				t.Errorf("pub %v req %v", pub, req)
			}
			check.Equal(t, c.PeerAdvertise(local), tt.advertise, "advertise")
		})
	}
	c := DefaultConfig()
	check.Equal(t, c.PeerAdvertise(nil), "", "no address")
	check.Equal(t, c.PeerListen(), "0.0.0.0:4520", "listen")
}

func TestValidateMaster(t *testing.T) {
	listens := func(addr string, pub, ret int) Listens {
		return Listens{Interface: netip.MustParseAddr(addr), PublishPort: pub, RetPort: ret}
	}
	tests := []struct {
		name   string
		master Listens
		edge   string
		want   string
	}{
		{"loopback beside own address", listens("127.0.0.1", 4505, 4506), "10.0.0.11:4505", ""},
		{"stock default", listens("0.0.0.0", 4505, 4506), "10.0.0.11:4506", "the salt-master listens on every address"},
		{"stock default, 6", listens("::", 4505, 4506), "10.0.0.11:4506", "the salt-master listens on every address"},
		{"same", listens("10.0.0.11", 4505, 4506), "10.0.0.11:4505", "is where the local salt-master listens"},
		{"mapped", listens("::ffff:10.0.0.11", 4505, 4506), "10.0.0.11:4505", "is where the local salt-master listens"},
		{"wildcard edge", listens("127.0.0.1", 4505, 4506), "0.0.0.0:4505", "would also claim 127.0.0.1"},
		{"other ports", listens("0.0.0.0", 14505, 14506), "10.0.0.11:4505", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := DefaultConfig()
			err := c.ValidateMaster(tt.master, tt.edge)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("err = %v", err)
			}
		})
	}
}
