// Package killtest kills a process in which a test does its work, wherever that is at the time, so that another can
// look at what is left.
//
// The process is the test's own binary, which runs one test only. That test asks Child what it was told, does its work
// and prints a line for whatever it promises; Kill reads the lines.
package killtest

import (
	"bufio"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
)

const env = "SALTCLUSTER_TEST_CHILD"

// Child returns what the process that is to be killed was told. A test that calls it is skipped in any other process.
func Child(t testing.TB) string {
	t.Helper()
	told := os.Getenv(env)
	if told == "" {
		t.Skip("is for a process that another test kills")
	}
	return told
}

// Kill starts a process with that test, tells it something, gives each line it prints to line, and kills it after some
// of those for which line returns true: at least that many, and fewer than most. It returns when the process is gone
// and all lines are read.
func Kill(t testing.TB, test, told string, least, most int, line func(text string) (counts bool)) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+test+"$")
	cmd.Env = append(os.Environ(), env+"="+told)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	left := least + rand.IntN(most-least)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if !line(lines.Text()) {
			continue
		}
		if left--; left == 0 {
			_ = cmd.Process.Kill()
		}
	}
	if err := cmd.Wait(); err == nil || left > 0 {
		t.Fatalf("the process ended on its own, %d lines too early: %v", max(0, left), err)
	}
}
