package straced

import (
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	const text = `10<strace> execve("/usr/bin/saltclusterd", ["saltclusterd", "--config", "x"], 0x7fff /* 39 vars */) = 0
10<saltclusterd> openat(AT_FDCWD</home>, "/etc/hosts", O_RDONLY|O_CLOEXEC) = 3</etc/hosts>
10<saltclusterd> openat(AT_FDCWD</home>, "/etc/hosts", O_RDONLY|O_CLOEXEC) = 3</etc/hosts>
11<saltclusterd> openat(5</var/lib/a b>, "c\"\303\274\33.tmp", O_RDWR|O_CREAT|O_EXCL|O_CLOEXEC, 0600 <unfinished ...>
11<saltclusterd> <... openat resumed>)    = 9</var/lib/a b/c>
11<saltclusterd> renameat(5</var/lib/x>, "one", 6</var/lib/y>, "../two") = 0
11<saltclusterd> symlinkat("to/there", 6</var/lib/y>, "link") = 0
11<saltclusterd> newfstatat(6</var/lib/y>, "", {st_mode=S_IFREG|0644, st_size=1, ...}, AT_EMPTY_PATH) = 0
11<saltclusterd> unlinkat(6</var/lib/gone>(deleted), "x", 0) = -1 ENOENT (No such file or directory)
11<saltclusterd> bind(7<TCP:[123]>, {sa_family=AF_INET, sin_port=htons(4506), sin_addr=inet_addr("10.0.0.1")}, 16) = 0
11<saltclusterd> bind(7<UDPv6:[123]>, {sa_family=AF_INET6, sin6_port=htons(4520), sin6_flowinfo=htonl(0), inet_pton(AF_INET6, "::", &sin6_addr), sin6_scope_id=0}, 28) = 0
11<saltclusterd> bind(8<TCP:[124]>, {sa_family=AF_INET, sin_port=htons(0), sin_addr=inet_addr("10.0.0.1")}, 16) = 0
11<saltclusterd> bind(8<UNIX-STREAM:[1]>, {sa_family=AF_UNIX, sun_path="/run/admin.sock"}, 110) = 0
11<saltclusterd> connect(8<UNIX-DGRAM:[1]>, {sa_family=AF_UNIX, sun_path=@"notify"}, 110) = 0
11<saltclusterd> sendto(9<UDP:[10.0.0.1:4520]>, "{sa_family=AF_UNIX, sun_path=\"/x\"}"..., 99, 0, {sa_family=AF_INET, sin_port=htons(4520), sin_addr=inet_addr("10.0.0.2")}, 16) = 99
11<saltclusterd> sendto(9<UDP:[10.0.0.1:4520]>, "a"..., 99, 0, NULL, 0) = 99
11<saltclusterd> sendto(3<NETLINK:[ROUTE:7]>, [{...}], 17, 0, {sa_family=AF_NETLINK, nl_pid=0, nl_groups=00000000}, 12) = 17
11<saltclusterd> readlinkat(AT_FDCWD</home>, "/var/lib/y/link", "../to/there", 128) = 11
11<saltclusterd> openat(AT_FDCWD</home>, "/proc/10/stat", O_RDONLY|O_CLOEXEC) = 3</proc/10/stat>
11<saltclusterd> openat(AT_FDCWD</home>, "/proc/99/status", O_RDONLY|O_CLOEXEC) = 3</proc/99/status>
12<saltclusterd> execve("/usr/bin/salt-master", ["salt-master", "--version"], 0xc000 /* 9 vars */ <unfinished ...>
12<salt-master> openat(AT_FDCWD</home>, "/etc/shadow", O_RDONLY) = 3
12<salt-master> execve("/bin/sh", ["sh"], 0xc000 /* 9 vars */) = 0
11<saltclusterd> +++ exited with 0 +++
`
	var got []string
	if err := Parse(strings.NewReader(text), "saltclusterd",
		func(w Touched) { got = append(got, string(w.Kind)+" "+w.What) }); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"read /etc/hosts", "write /var/lib/a b/c\"ü\x1b.tmp", "write /var/lib/x/one", "write /var/lib/two",
		"write /var/lib/y/link",
		"read /var/lib/y", "write /var/lib/gone/x", "listen tcp 10.0.0.1:4506", "listen udp [::]:4520",
		"listen unix /run/admin.sock",
		"connect unix @notify", "connect udp 10.0.0.2:4520", "connect netlink", "read /var/lib/y/link",
		"read /proc/self/stat", "read /proc/99/status", "start /usr/bin/salt-master --version",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
