package health

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"saltclusterd/integration/require"
)

const haproxyConfig = `
global
    stats socket %[1]s mode 600 level admin
defaults
    mode tcp
    timeout connect 1s
    timeout client 5s
    timeout server 5s
backend pub
    option httpchk GET /pub
    server m1 127.0.0.1:%[2]s check inter 50ms fall 1 rise 1
backend keep
    option httpchk GET /req
    http-check disable-on-404
    server m1 127.0.0.1:%[2]s check inter 50ms fall 1 rise 1 on-marked-down shutdown-sessions
backend agent
    server m1 127.0.0.1:%[2]s agent-check agent-port %[3]s agent-inter 50ms weight 100
`

// TestHAProxyUnderstands runs a real HAProxy against both answers: a drained
// node must come back by itself.
func TestHAProxyUnderstands(t *testing.T) {
	bin, err := exec.LookPath("haproxy")
	if err != nil {
		t.Skip("haproxy is not installed")
	}
	var state atomic.Pointer[Result]
	state.Store(&Result{})
	c := settled(t, func(c *Checker) {
		c.Register("publisher", ScopeServe, func(context.Context) Result { return *state.Load() })
	})
	url, agent := serve(t, c)
	socket := startHAProxy(t, bin, url[strings.LastIndex(url, ":")+1:], agent[strings.LastIndex(agent, ":")+1:])
	steps := []struct {
		name             string
		drain            bool
		result           Result
		pub, keep, agent string
		weight           string
	}{
		{"serving", false, Result{}, "UP", "UP", "no check", "100"},
		{"draining", true, Result{}, "DOWN", "NOLB", "DRAIN", ""}, // NOLB: no new connections, those there are live on
		{"serving again", false, Result{}, "UP", "UP", "no check", "100"},
		{"with a warning", false, Result{Level: Warn}, "UP", "UP", "no check", "75"},
		{"removed", false, Result{Level: Fail, Maintenance: true}, "DOWN", "DOWN", "MAINT", ""},
		{"joined again", false, Result{}, "UP", "UP", "no check", "100"},
		{"failing", false, Result{Level: Fail}, "DOWN", "DOWN", "DOWN", ""},
	}
	for _, s := range steps {
		c.SetDraining(s.drain)
		state.Store(&s.result)
		c.Kick()
		var last map[string]string
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
			if last = serverStates(socket); last["pub"] == s.pub && last["keep"] == s.keep &&
				strings.HasPrefix(last["agent"], s.agent) &&
				(s.weight == "" || last["agent weight"] == s.weight) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: HAProxy sees %v, want %s, %s and %s %s", s.name, last, s.pub, s.keep, s.agent, s.weight)
			}
		}
	}
}

func startHAProxy(t *testing.T, bin, port, agentPort string) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "hap") // short: it holds a socket
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket = filepath.Join(dir, "s")
	file := filepath.Join(dir, "haproxy.cfg")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, haproxyConfig, socket, port, agentPort), 0o600))
	var out bytes.Buffer
	cmd := exec.Command(bin, "-db", "-f", file)
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if t.Failed() {
			t.Logf("haproxy:\n%s", out.String())
		}
	})
	return socket
}

// serverStates asks for the status of m1 in each backend.
func serverStates(socket string) map[string]string {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return nil
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	io.WriteString(c, "show stat\n")
	rows, _ := csv.NewReader(io.LimitReader(c, 1<<20)).ReadAll()
	states := map[string]string{}
	for _, row := range rows {
		if len(row) > 18 && row[1] == "m1" {
			states[row[0]], states[row[0]+" weight"] = row[17], row[18]
		}
	}
	return states
}
