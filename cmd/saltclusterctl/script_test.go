package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/admin/admintest"
	"saltclusterd/sidecar/saltcrypt"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"saltclusterctl": func() {
		e := console.SystemEnv()
		if os.Getenv("GUESSES_ARE_CHEAP") != "" { // under the race detector a passphrase takes five seconds each time
			e.WorkFactor = 10
		}
		runIn(e)
	}})
}

// TestScripts runs testdata/*.txtar: the real program against the real admin
// server with a fake daemon behind it. The command `daemon NAME` starts one of
// daemons(); `exits CODE command...` checks the exit code.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:           "testdata",
		UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("SALTCLUSTER_SOCKET", filepath.Join(socketDir(t), "admin.sock"))
			e.Setenv("SALTCLUSTER_CONFIG", filepath.Join(e.WorkDir, "saltclusterd"))
			e.Setenv("CREDENTIALS_DIRECTORY", "")
			e.Setenv("SALTCLUSTER_SERVICE_MANAGER", "systemd")
			e.Setenv("COLUMNS", "1000") // lines are found whole; columns_test.go looks at 80
			e.Setenv(tokenVariable, "")
			e.Setenv("GORACE", "atexit_sleep_ms=0") // else every run of the program costs a second under -race
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"daemon": startDaemon,
			"exits":  exits,

			"masterkey": masterKey,
		},
	})
}

// socketDir is short enough for a unix socket, whatever TMPDIR is.
func socketDir(t *testing.T) string {
	dir, err := os.MkdirTemp("", "ctl")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func startDaemon(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || daemons()[args[0]] == nil {
		ts.Fatalf("usage: daemon NAME")
	}
	var fake any = daemons()[args[0]]
	if args[0] == "upgrades" {
		fake = &upgraded{fake: healthy()}
	}
	s, err := admin.New(admin.Config{Socket: ts.Getenv("SALTCLUSTER_SOCKET"), Verbs: admintest.Verbs(fake)})
	ts.Check(err)
	ts.Check(s.Open(context.Background()))
	ts.Defer(func() { s.Close() })
}

// exits runs a command and compares its exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND...")
	}
	want := args[0]
	err := ts.Exec(args[1], args[2:]...)
	got := "0"
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		got = strconv.Itoa(e.ExitCode())
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("%v: exit code %s, want %s", args[1:], got, want)
	}
}

// masterKey makes a salt-master's private key.
func masterKey(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: masterkey FILE")
	}
	key, err := saltcrypt.GenerateMasterKey(2048)
	ts.Check(err)
	path := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(path), 0o755))
	ts.Check(os.WriteFile(path, key.PEM(), 0o400))
}
