package mastertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Umask is the one that a salt-master has unless it was told another.
const Umask = 0o022

const codeTimeout = 5 * time.Minute

// Code has a script of a test run Salt's code of the master's version under its configuration and a umask: it is called
// with the main file, a file with todo and one for results, both JSON. The master does not run.
func (m *Master) Code(script string, umask uint32, todo, results any) {
	m.t.Helper()
	in, out := filepath.Join(m.Dir, "cases"), filepath.Join(m.Dir, "results")
	text, err := json.Marshal(todo)
	err = errors.Join(err, os.WriteFile(in, text, 0o600), os.MkdirAll(m.CacheDir, 0o755), os.MkdirAll(m.SockDir, 0o755))
	if err == nil {
		script, err = filepath.Abs(script)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), codeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", fmt.Sprintf("umask %03o; exec \"$@\"", umask), "sh",
		Bin(m.t, m.Version, "python"), script, m.ConfigPath, in, out)
	cmd.Dir = m.Dir
	if console, err := cmd.CombinedOutput(); err != nil {
		m.t.Fatalf("stock code of %s: %v\n%s", m.Version, err, console)
	}
	text, err = os.ReadFile(out)
	if err == nil {
		err = json.Unmarshal(text, results)
	}
	if err != nil {
		m.t.Fatalf("results of %s: %v", m.Version, err)
	}
}
