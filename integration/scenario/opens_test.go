//go:build integration

package scenario

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/integration/straced"
)

// A saltclusterd that is watched starts, serves, is operated, is upgraded in place and stops: it touches nothing that
// docs/reference/files-ports.md does not name.
func testOpens(t *testing.T, c *lab.Cluster) {
	ctx, n := t.Context(), c.Nodes[1]
	d, trace := n.Daemon, filepath.Join(n.Dir(), "strace")
	labtest.Must(t, d.Watch(trace))
	defer func() { labtest.Must(t, d.Watch("")) }()
	labtest.Must(t, d.Restart(ctx))
	labtest.Must(t, d.Serving(ctx, time.Minute))
	page := filepath.Join(n.Master.FileRoot(), "opens.txt")
	labtest.Must(t, os.WriteFile(page, []byte("what is opened\n"), 0o644))
	defer os.Remove(page)
	id := c.Minions[0].ID
	for _, job := range [][]string{{"mine.send", "test.ping"}, {"cp.get_file_str", "salt://top.sls"}} {
		labtest.Must(t, lab.Eventually(ctx, time.Minute, "an answer to "+job[0], func(ctx context.Context) error {
			got, err := n.Master.Pub(ctx, id, job[0], job[1:]...)
			if err != nil {
				return err
			}
			return lab.AnsweredBy(got, id)
		}))
	}
	for _, args := range [][]string{
		{"status"}, {"verify"}, {"rotate", "aes", "--yes"}, {"snapshot", "save", filepath.Join(n.Dir(), "opens.snapshot")},
		{"bundle", filepath.Join(n.Dir(), "opens.tar.gz")}, {"upgrade"},
	} {
		must(t, d, args...)
	}
	for _, page := range []string{"/readyz", "/metrics", "/status"} {
		_, err := healthOf(ctx, n, page)
		labtest.Must(t, err)
	}
	answered(t, c, n) // a 3008 minion that loses its connection while it signs in with the new key would listen no more
	labtest.Must(t, d.Stop(ctx))
	opensWhatItSays(t, n, trace)
	labtest.Must(t, d.Watch(""))
	labtest.Must(t, d.Start(ctx))
	labtest.Must(t, d.Serving(ctx, time.Minute))
	answered(t, c, n) // minions of 3006 come back after up to ten seconds
}

// opensWhatItSays compares what strace saw of a node's saltclusterd with the table in docs/reference/files-ports.md.
func opensWhatItSays(t *testing.T, n *lab.Node, trace string) {
	t.Helper()
	f, err := os.Open(trace)
	labtest.Must(t, err)
	defer f.Close()
	table := opensTable(t, n)
	seen, strange := map[string]bool{}, 0
	labtest.Must(t, straced.Parse(f, "saltclusterd", func(w straced.Touched) {
		name := table.allows(w)
		seen[name] = true
		if name != "" {
			return
		}
		if strange++; strange <= 30 {
			t.Errorf("%s: saltclusterd does %s %s, of which docs/reference/files-ports.md says nothing", n.Name, w.Kind,
				strings.ReplaceAll(w.What, n.Dir(), "…"))
		}
	}))
	for _, name := range []string{"`state_dir`", "`pki_dir`", "`cachedir`", "`4505`", "`4506`", "`4520`", "`admin_socket`",
		"`sock_dir`", "`127.0.0.1:4506`", "`itself`"} {
		if !seen[name] {
			t.Errorf("%s: nothing was seen of %s: does this test still look?", n.Name, name)
		}
	}
}

// opens is the table, by kind: what is named, and what that means on a node.
type opens map[straced.Kind][]named

type named struct {
	name string // as the table has it
	fits func(what string) bool
}

// allows returns by which name something is allowed; empty: by none.
func (o opens) allows(w straced.Touched) string {
	for _, n := range o[w.Kind] {
		if n.fits(w.What) {
			return n.name
		}
	}
	return ""
}

var (
	opensRow  = regexp.MustCompile(`(?m)^\| (reads|reads and writes|listens|connects to|starts) \| (.*) \|$`)
	opensName = regexp.MustCompile("`[^`]+`")
)

// opensTable reads the table for a node.
func opensTable(t *testing.T, n *lab.Node) opens {
	t.Helper()
	raw, err := os.ReadFile("../../docs/reference/files-ports.md")
	labtest.Must(t, err)
	rows := opensRow.FindAllStringSubmatch(string(raw), -1)
	if len(rows) != 5 {
		t.Fatalf("the table of what saltclusterd opens has %d rows", len(rows))
	}
	out := opens{}
	bin, err := filepath.Abs("../../bin")
	labtest.Must(t, err)
	below := func(dirs ...string) func(string) bool {
		return func(what string) bool {
			for _, dir := range dirs {
				if what == dir || strings.HasPrefix(what, dir+"/") {
					return true
				}
			}
			return false
		}
	}
	d, srv := n.Daemon, filepath.Dir(n.Master.FileRoot())
	program := filepath.Join(bin, "saltclusterd")
	dirs := map[string][]string{ // what is named by an option, or is elsewhere in a lab
		"/etc/salt": {n.Master.ConfigDir}, "file_roots": {n.Master.FileRoot()},
		"pillar_roots": {filepath.Join(srv, "pillar")},
		"state_dir":    {d.StateDir}, "run_dir": {filepath.Dir(d.Socket)}, "cluster_pki_dir": {filepath.Join(d.StateDir, "pki")},
		"pki_dir": {n.Master.PKIDir()}, "cachedir": {n.Master.CacheDir()},
		"token_dir":         {filepath.Join(n.Master.CacheDir(), "tokens")},
		"sock_dir":          {n.Master.SockDir()},
		"reactor":           {filepath.Join(n.Dir(), "srv", "reactor")}, // countReactions
		"extension_modules": {filepath.Join(n.Master.CacheDir(), "extmods")}, "module_dirs": nil,
		"$CREDENTIALS_DIRECTORY": nil, // no systemd
		"ssl":                    nil, // not set in this lab
	}
	places := []string{program}
	for _, row := range rows {
		for _, name := range opensName.FindAllString(row[2], -1) {
			text := strings.Trim(name, "`")
			var fits func(string) bool
			paths, isPath := dirs[text]
			switch {
			case isPath && strings.HasPrefix(row[1], "reads"):
				fits, places = below(paths...), append(places, paths...)
			case text == ".git", text == ".etckeeper":
				fits = func(what string) bool { return filepath.Base(what) == text }
			case text == "/proc/PID/status":
				fits = regexp.MustCompile(`^/proc/\d+/status$`).MatchString
			case strings.HasPrefix(text, "/"):
				fits, places = below(text), append(places, text)
			case text == "sock_dir" && row[1] == "connects to":
				fits = below("unix " + n.Master.SockDir())
			case text == "admin_socket":
				fits = below("unix " + d.Socket)
			case text == "$NOTIFY_SOCKET":
				fits = func(what string) bool { return strings.HasPrefix(what, "unix @saltcluster-lab-") }
			case text == "health_listen":
				fits = below("tcp " + n.Addr + ":4580")
			case text == "netlink":
				fits = below(text)
			case text == "4520" && row[1] == "connects to":
				fits = regexp.MustCompile(`^(tcp|udp) 10\.\d+\.\d+\.\d+:4520$`).MatchString
			case text == "4520":
				fits = below("tcp "+n.Addr+":4520", "udp "+n.Addr+":4520")
			case text == "4505", text == "4506":
				fits = below("tcp " + n.Addr + ":" + text)
			case strings.HasPrefix(text, "127.0.0.1:"):
				fits = below("tcp " + text)
			case strings.HasPrefix(text, "salt_master_command "):
				fits = below(strings.Replace(text, "salt_master_command", n.Master.Command(), 1))
			case text == "itself":
				fits = func(what string) bool { return strings.HasPrefix(what+" ", program+" --") }
			case text == "agent_check_listen", text == "cluster_peers", text == "trace_endpoint", text == "master_restart_command":
				fits = below() // not set in this lab
			default:
				t.Errorf("docs/reference/files-ports.md: this test does not know what %s means in the row %q", name, row[1])
				continue
			}
			for _, kind := range map[string][]straced.Kind{
				"reads": {straced.Read}, "reads and writes": {straced.Read, straced.Write}, "listens": {straced.Listen},
				"connects to": {straced.Connect}, "starts": {straced.Start},
			}[row[1]] {
				out[kind] = append(out[kind], named{name, fits})
			}
		}
	}
	above := func(what string) bool {
		return slices.ContainsFunc(places, func(p string) bool {
			return strings.HasPrefix(p, strings.TrimSuffix(what, "/")+"/")
		})
	}
	out[straced.Read] = append(out[straced.Read], named{"its own program", below(program)},
		named{"the directories above", above})
	return out
}
