package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
)

const crashing = "SALTCLUSTERD_TEST_CRASH"

// TestMain lets the test program be the one that crashes.
func TestMain(m *testing.M) {
	switch os.Getenv(crashing) {
	case "":
		os.Exit(m.Run())
	case "withheld":
		if err := forbidCoreDumps(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGABRT); err != nil {
		fmt.Println(err)
	}
	select {}
}

// A process that crashes with everything allowed leaves no core.
func TestNoCoreIsDumped(t *testing.T) {
	crash := func(how string) syscall.WaitStatus {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", `ulimit -c unlimited && exec "$0"`, os.Args[0])
		cmd.Dir, cmd.Env = t.TempDir(), append(os.Environ(), crashing+"="+how, "GOTRACEBACK=crash")
		err := cmd.Run()
		ended, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			t.Fatal(err)
		}
		ws, _ := ended.Sys().(syscall.WaitStatus)
		if !ws.Signaled() {
			t.Fatalf("it did not crash: %v", err)
		}
		return ws
	}
	if !crash("bare").CoreDump() {
		t.Skip("this system dumps no cores of anybody")
	}
	if crash("withheld").CoreDump() {
		t.Error("a core was dumped")
	}
}
