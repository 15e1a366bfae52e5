package doctor

import (
	"context"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	zmq4 "github.com/go-zeromq/zmq4"
	"github.com/go-zeromq/zmq4/security/null"
	"saltclusterd/gossip/peer"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
)

// levels are those of findings, in their order.
func levels(found []Finding) string {
	var out []string
	for _, f := range found {
		out = append(out, string(f.Level))
		if (f.Level == Warn || f.Level == Fail) && (f.Why == "" && f.Check != "status" || f.Next == "") {
			out = append(out, "(says too little: "+f.What+")")
		}
	}
	return strings.Join(out, " ")
}

func TestMasterConfig(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "master")
	write := func(name, text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	look := func(want, words string) {
		t.Helper()
		found := MasterConfig(path, 3007)
		if got := levels(found); got != want || !strings.Contains(found[0].What, words) {
			t.Errorf("%q: %+v", got, found)
		}
	}
	look("ok", "")
	write("master", "default_include: '*.conf'\nworker_threads: 5\n")
	look("ok", "")
	write("broken.conf", "a: [\n")
	look("warn", "broken.conf")
	write("master", "worker_threads: 5\nfile_roots: {base: [/srv/salt}\n")
	look("fail", path+": yaml: line 2: ")
}

func TestJudgePorts(t *testing.T) {
	at := func(addr, process string) Listener { return Listener{netip.MustParseAddrPort(addr), process} }
	ours := Ports{Publish: 4505, Ret: 4506, Ours: []string{"10.0.0.11:4505", "10.0.0.11:4506"}}
	named := ours
	named.Interface = []string{"10.0.0.11"}
	good := []Listener{at("127.0.0.1:4505", "salt-master (pid 7)"), at("127.0.0.1:4506", ""), at("10.0.0.11:4505", ""),
		at("10.0.0.11:4506", "")}
	for name, tt := range map[string]struct {
		ports Ports
		have  []Listener
		want  string
	}{
		"good": {ours, good, "ok"},
		"master on everything": {Ports{Publish: 4505, Ret: 4506},
			[]Listener{at("0.0.0.0:4505", "salt-master (pid 7)"), at("0.0.0.0:4506", "")}, "fail fail"},
		"master on the address": {
			Ports{Publish: 4505, Ret: 4506},
			[]Listener{at("10.0.0.11:4505", "salt-master (pid 7)"), at("127.0.0.1:4506", "")}, "fail",
		},
		"a load balancer": {ours, append([]Listener{at("10.0.0.5:4505", "haproxy (pid 9)")}, good...), "fail"},
		"its own address": {named, append([]Listener{at("10.0.0.5:4505", "haproxy (pid 9)"),
			at("[2001:db8::5]:4506", "haproxy (pid 9)")}, good...), "ok"},
		"not its own": {Ports{Publish: 4505, Ret: 4506, Interface: named.Interface},
			append([]Listener{at("10.0.0.11:4505", "haproxy (pid 9)")}, good[:2]...), "fail"},
		"all addresses": {named, append([]Listener{at("0.0.0.0:4505", "haproxy (pid 9)")}, good...), "fail"},
		"no master":     {ours, good[2:], "fail"},
		"not opened":    {Ports{Publish: 4505, Ret: 4506}, good[:2], "warn"},
		"other ports":   {Ports{Publish: 14505, Ret: 14506, Ours: []string{"10.0.0.11:14505"}}, good, "fail"},
		"a witness":     {Ports{Publish: 4505, Ret: 4506, Witness: true}, nil, ""},
		"no daemon, by name": {Ports{Publish: 4505, Ret: 4506},
			append([]Listener{at("10.0.0.11:4505", "saltclusterd (pid 8)")}, good[:2]...), "warn"},
	} {
		check.Equal(t, levels(JudgePorts(tt.ports, tt.have)), tt.want, name)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// fakeProc is a /proc with one process, 42, that listens on 127.0.0.1:4505 and [::1]:4506 and holds three watches.
func fakeProc(t *testing.T) string {
	t.Helper()
	proc := t.TempDir()
	const head = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
	write(t, filepath.Join(proc, "net/tcp"), head+
		"   0: 0100007F:1199 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1 0\n"+
		"   1: 0100007F:1199 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 112 1 0\n"+
		"   2: 0100007F:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 113 1 0\nshort line\n")
	write(t, filepath.Join(proc, "net/tcp6"), head+
		"   0: 00000000000000000000000001000000:119A 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 114 1 0\n")
	write(t, filepath.Join(proc, "42/comm"), "salt-master\n")
	write(t, filepath.Join(proc, "42/fdinfo/5"), "pos: 0\ninotify wd:3 ino:1\ninotify wd:2 ino:2\ninotify wd:1 ino:3\n")
	require.NoError(t, os.MkdirAll(filepath.Join(proc, "42/fd"), 0o755))
	for name, target := range map[string]string{"3": "socket:[111]", "4": "socket:[114]", "5": "anon_inode:inotify",
		"6": "/dev/null"} {
		require.NoError(t, os.Symlink(target, filepath.Join(proc, "42/fd", name)))
	}
	write(t, filepath.Join(proc, "sys/fs/inotify/max_user_watches"), "8192\n")
	write(t, filepath.Join(proc, "sys/fs/inotify/max_user_instances"), "128\n")
	return proc
}

func TestListeners(t *testing.T) {
	got, err := Listeners(fakeProc(t), 4505, 4506)
	if err != nil || len(got) != 2 {
		t.Fatalf("%v, %v", got, err)
	}
	if got[0].Addr.String() != "127.0.0.1:4505" || got[0].Process != "salt-master (pid 42)" ||
		got[1].Addr.String() != "[::1]:4506" {
		t.Errorf("%v", got)
	}
	if _, err := Listeners(t.TempDir(), 4505); !os.IsNotExist(err) {
		t.Errorf("without /proc: %v", err)
	}
	for _, bad := range []string{"", "0100007F", "0100007F:x", "zz:1199", "01:1199"} {
		if _, ok := kernelAddr(bad); ok {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestInotify(t *testing.T) {
	proc := fakeProc(t)
	check.Equal(t, levels(Inotify(proc, 42)), "ok ok", "enough")
	write(t, filepath.Join(proc, "sys/fs/inotify/max_user_watches"), "3\n")
	check.Equal(t, levels(Inotify(proc, 42)), "fail ok", "none left")
	write(t, filepath.Join(proc, "sys/fs/inotify/max_user_instances"), "what\n")
	check.Equal(t, levels(Inotify(proc, 42)), "fail skip", "unreadable")
	check.Equal(t, levels(Inotify(proc, 43)), "skip", "no such process")
}

func TestLocalPorts(t *testing.T) {
	proc := t.TempDir()
	path := filepath.Join(proc, "sys/net/ipv4/ip_local_port_range")
	check.Equal(t, LocalPorts(proc), 0, "nothing there")
	for text, want := range map[string]int{"32768\t60999\n": 28232, "10240 65535": 55296, "9 1": 0, "what": 0, "": 0} {
		write(t, path, text)
		check.Equal(t, LocalPorts(proc), want, text)
	}
}

func TestProgramName(t *testing.T) {
	proc := t.TempDir()
	for pid, p := range map[string][3]string{
		"1": {"/opt/saltstack/\n", "/opt/saltstack/salt/bin/python3.10 /usr/bin/salt-master RequestServer ReqServer\x00\x00",
			"salt-master"},
		"2": {"haproxy\n", "/usr/sbin/haproxy\x00-f\x00/etc/haproxy/salt-master.cfg\x00", "haproxy"},
		"3": {"kworker\n", "", "kworker"},
	} {
		write(t, filepath.Join(proc, pid, "comm"), p[0])
		write(t, filepath.Join(proc, pid, "cmdline"), p[1])
		if got, err := programName(filepath.Join(proc, pid)); got != p[2] || err != nil {
			t.Errorf("%s: %q, %v", pid, got, err)
		}
	}
	if _, err := programName(filepath.Join(proc, "4")); err == nil {
		t.Error("a process that is gone has a name")
	}
}

func TestOpenFiles(t *testing.T) {
	proc := t.TempDir()
	process := func(pid, comm, hard, caps string) {
		write(t, filepath.Join(proc, pid, "comm"), comm+"\n")
		write(t, filepath.Join(proc, pid, "limits"),
			"Limit                     Soft Limit           Hard Limit           Units\nMax open files            1024                 "+hard+"                files\n")
		write(t, filepath.Join(proc, pid, "status"), "Name:\t"+comm+"\nCapEff:\t"+caps+"\n")
	}
	write(t, filepath.Join(proc, "sys/fs/nr_open"), "1048576\n")
	process("1", "systemd", "900000", "000001ffffffffff")
	check.Equal(t, OpenFiles(proc), 0, "no HAProxy")
	process("7", "haproxy", "20000", "0000000000000000")
	check.Equal(t, OpenFiles(proc), 20_000, "one without rights")
	process("6", "haproxy", "20000", "000001fffeffffff")
	check.Equal(t, OpenFiles(proc), 20_000, "root's, without that right")
	process("5", "haproxy", "4096", "000001ffffffffff")
	check.Equal(t, OpenFiles(proc), 1_048_576, "one that may raise it")
	write(t, filepath.Join(proc, "5/limits"), "what")
	write(t, filepath.Join(proc, "5/status"), "CapEff:\tzz\n")
	check.Equal(t, OpenFiles(proc), 20_000, "beside one that says nothing")
}

func TestPermissions(t *testing.T) {
	dir := t.TempDir()
	pki, secret := filepath.Join(dir, "pki"), filepath.Join(dir, "master.pem")
	require.NoError(t, os.Mkdir(pki, 0o700))
	write(t, secret, "x")
	me, my := uint32(os.Geteuid()), uint32(os.Getegid())
	paths := []Path{{Path: pki, Writes: true}, {Path: filepath.Join(dir, "none"), Writes: true}}
	check.Equal(t, levels(Permissions(account(me, my), paths)), "ok", "the owner")
	require.NoError(t, os.Chmod(pki, 0o770))
	check.Equal(t, levels(Permissions(account(me+1, my+1, my), paths)), "ok", "one of its group")
	check.Equal(t, levels(Permissions(account(me+1, my+1), paths)), "fail", "somebody else")
	if got := levels(Permissions(account(0, 0), append(paths, Path{Path: secret, Secret: true}))); got != "fail" {
		t.Errorf("a key for everybody: %s", got)
	}
	require.NoError(t, os.Chmod(secret, 0o600))
	if got := levels(Permissions(account(0, 0), []Path{{Path: secret, Secret: true}})); got != "ok" {
		t.Errorf("a key for its owner: %s", got)
	}
}

func TestKeysAndCertificates(t *testing.T) {
	dir := t.TempDir()
	pub := filepath.Join(dir, "master.pub")
	check.Equal(t, levels(Identity(pub, "aa")), "", "no key")
	write(t, pub, "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----\n")
	check.Equal(t, levels(Identity(pub, "aa"))+" "+levels(MinionsMaster(pub, "aa")), "fail warn", "another")
	crt := filepath.Join(dir, "node.crt")
	check.Equal(t, levels(Certificate(crt, time.Now())), "", "no certificate")
	write(t, crt, "what")
	check.Equal(t, levels(Certificate(crt, time.Now())), "fail", "no PEM")
	dir = t.TempDir()
	if _, err := peer.LoadIdentity(dir, "m1"); err != nil {
		t.Fatal(err)
	}
	crt = filepath.Join(dir, peer.CertFile)
	for now, want := range map[time.Time]string{
		time.Now().AddDate(0, 0, 1):  "never expires; the member list decides which nodes belong",
		time.Now().AddDate(0, 0, -2): "which no node checks", // the clock is wrong, or was
	} {
		if got := Certificate(crt, now); levels(got) != "ok" || !strings.Contains(got[0].What, want) {
			t.Errorf("%s: %+v", now, got)
		}
	}
}

// The node whose clock is wrong says it of itself, and finds those of the others right.
func TestClocks_OwnClockWrong(t *testing.T) {
	skew := func(d time.Duration) *float64 { s := d.Seconds(); return &s }
	for _, c := range []struct {
		name   string
		b, c   time.Duration
		levels string
		says   string
	}{
		{"ahead of both", -25 * time.Minute, -25 * time.Minute, "fail ok ok", "a this host's clock is 25m0s ahead"},
		{"behind both", 25 * time.Minute, 25 * time.Minute, "fail ok ok", "a this host's clock is 25m0s behind"},
		{"another ahead", 25 * time.Minute, 0, "fail ok", "b is 25m0s ahead"},
		{"all apart", 25 * time.Minute, -25 * time.Minute, "fail fail", "b is 25m0s ahead"},
	} {
		found := Clocks("a", []adminapi.CheckupPeer{{Node: "b", Skew: skew(c.b)}, {Node: "c", Skew: skew(c.c)}})
		check.Equal(t, levels(found), c.levels, c.name)
		if first := found[0].Where + " " + found[0].What; !strings.HasPrefix(first, c.says) {
			t.Errorf("%s: %q", c.name, first)
		}
	}
}

func TestClocksAndVersions(t *testing.T) {
	skew := func(s float64) *float64 { return &s }
	peers := []adminapi.CheckupPeer{
		{Node: "a", RoundTrip: 0.001, Skew: skew(0.4)}, {Node: "b", RoundTrip: 0.001, Skew: skew(-3)},
		{Node: "c", Skew: skew(60)},
		{Node: "far", RoundTrip: 10, Skew: skew(5)}, {Node: "old"}, {Node: "down", Error: "connection refused"},
	}
	check.Equal(t, levels(Clocks("self", peers)), "ok warn fail ok skip fail")
	member := func(salt, ours string) adminapi.Member {
		return adminapi.Member{ID: "m", SaltVersion: salt, Version: ours}
	}
	for want, members := range map[string][]adminapi.Member{
		"ok":      {member("3006.28", "1"), member("3006.1", "1"), member("", "")},
		"warn":    {member("3006.28", "1"), member("3006.28", "2")},
		"fail ok": {member("2019.2.8", "1"), member("3007.15", "1")},
		"warn ok": {member("3008.3", "1"), member("3007.15", "2")},
	} {
		check.Equal(t, levels(Versions(members)), want)
	}
	if got := levels(Problems(adminapi.Status{Problems: []adminapi.Problem{{Level: adminapi.LevelFail, Message: "x",
		Hint: "y"}}})); got != "fail" {
		t.Error(got)
	}
}

func TestAddresses(t *testing.T) {
	have := []netip.Addr{netip.MustParseAddr("10.0.0.11"), netip.MustParseAddr("2001:db8::11"),
		netip.MustParseAddr("127.0.0.1")}
	for want, in := range map[string]struct {
		bound     []string
		advertise string
	}{
		"ok":        {[]string{"10.0.0.11", "2001:db8::11", "127.0.0.53"}, "10.0.0.11:4520"},
		"fail":      {[]string{"10.0.0.12", "10.0.0.11"}, ""},
		"warn":      {nil, "192.0.2.1"},
		"fail warn": {[]string{"10.0.0.12"}, "[2001:db8::12]:4520"},
	} {
		check.Equal(t, levels(Addresses(in.bound, in.advertise, have)), want, in)
	}
}

func TestNames(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	check.Equal(t, levels(Names(ctx, []string{"10.0.0.1", "[2001:db8::1]:4520", "10.0.0.2:4520"})), "", "addresses")
	check.Equal(t, levels(Names(ctx, []string{"localhost"})), "fail", "this host")
}

func TestParseTarget(t *testing.T) {
	for in, want := range map[string]Target{
		"10.0.0.5":           {"minions'", "10.0.0.5", 4505, 4506},
		"lb.example.com:5:6": {"minions'", "lb.example.com", 5, 6},
		"2001:db8::1":        {"minions'", "2001:db8::1", 4505, 4506},
		"[2001:db8::1]":      {"minions'", "2001:db8::1", 4505, 4506},
		"[2001:db8::1]:5:6":  {"minions'", "2001:db8::1", 5, 6},
	} {
		if got, err := ParseTarget(in, 4505, 4506); err != nil || got != want {
			t.Errorf("%s: %+v, %v", in, got, err)
		}
	}
	for _, bad := range []string{"", "a:b:c", "[::1]:5"} {
		if _, err := ParseTarget(bad, 4505, 4506); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func listenPort(t *testing.T, serve func(net.Conn)) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { defer c.Close(); serve(c) }()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// server is a ZeroMQ server of the other implementation. answer gives what it says to a request.
func server(t *testing.T, kind zmq4.SocketType, answer func([]byte) []byte) int {
	t.Helper()
	return listenPort(t, func(c net.Conn) {
		z, err := zmq4.Open(c, null.Security(), kind, nil, true, nil)
		if err != nil {
			return
		}
		for {
			m, err := z.RecvMsg()
			if err != nil {
				return
			}
			if reply := answer(m.Bytes()); reply != nil {
				_ = z.SendMsg(zmq4.NewMsgFrom(nil, reply))
			}
		}
	})
}

// TestProbe: who serves well, who answers wrongly, only small requests or not at all, who is hostile, who is not there.
func TestProbe(t *testing.T) {
	pub := server(t, zmq4.XPub, func([]byte) []byte { return nil })
	silent := listenPort(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	web := listenPort(t, func(c net.Conn) {
		_, _ = c.Write([]byte("HTTP/1.0 400 Bad request\r\n\r\n" + strings.Repeat(" ", 100)))
	})
	huge := listenPort(t, func(c net.Conn) {
		greeting := append([]byte{0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0}, append([]byte("NULL"), make([]byte, 48)...)...)
		_, _ = c.Write(append(greeting, 0x06, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff))
		_, _ = c.Read(make([]byte, 1000))
	})
	closed := listenPort(t, func(net.Conn) {})
	for name, tt := range map[string]struct {
		pub, req int
		want     string
	}{
		"good":         {pub, server(t, zmq4.Router, func(b []byte) []byte { return b }), "ok ok"},
		"another text": {pub, server(t, zmq4.Router, func([]byte) []byte { return []byte("what?") }), "ok fail"},
		"small only": {pub, server(t, zmq4.Router, func(b []byte) []byte {
			if len(b) > 1500 {
				return nil
			}
			return b
		}), "ok fail"},
		"no answer":    {pub, server(t, zmq4.Router, func([]byte) []byte { return nil }), "ok fail"},
		"silent":       {silent, silent, "fail fail"},
		"a web server": {web, web, "fail fail"},
		"a huge frame": {huge, huge, "fail fail"},
		"hangs up":     {closed, closed, "fail fail"},
		"crossed":      {server(t, zmq4.Router, func([]byte) []byte { return nil }), pub, "fail fail"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			found := Probe(ctx, []Target{{Name: "m1", Host: "127.0.0.1", PublishPort: tt.pub, RetPort: tt.req}})
			if got := levels(found); got != tt.want {
				t.Errorf("%s, want %s: %+v", got, tt.want, found)
			}
		})
	}
}

func TestProbe_ConnectionRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	found := Probe(t.Context(), []Target{{Name: "m1", Host: "127.0.0.1", PublishPort: port, RetPort: port}})
	if got := levels(found); got != "fail fail" || !strings.Contains(found[0].What, "refused") {
		t.Errorf("%s: %+v", got, found)
	}
}

func TestGuideIsTheTable(t *testing.T) {
	const path = "../../../docs/how-to/troubleshoot.md"
	have, err := os.ReadFile(path)
	require.NoError(t, err)
	if string(have) != Guide() {
		if os.Getenv("UPDATE") == "" {
			t.Fatalf("%s is not what the table says; UPDATE=1 rewrites it", path)
		}
		require.NoError(t, os.WriteFile(path, []byte(Guide()), 0o644))
	}
}

func TestExplain(t *testing.T) {
	for _, s := range Symptoms() {
		if got := Explain("[ERROR] " + strings.ToUpper(s.Words) + "!"); len(got) == 0 {
			t.Errorf("%q is not found", s.Words)
		}
		for _, c := range s.Causes {
			if c.Cause == "" || c.Look == "" || c.Then == "" {
				t.Errorf("%q: %+v", s.Words, c)
			}
		}
	}
	if len(Explain("")) != 0 || len(Explain("xyzzy")) != 0 {
		t.Error("something is known about nothing")
	}
}
