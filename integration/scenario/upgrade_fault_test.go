//go:build integration

package scenario

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/handover"
)

// faultEnv makes this test program play a saltclusterd that fails while it takes over.
const faultEnv = "SALTCLUSTER_BAD_UPGRADE"

func init() {
	if fault := os.Getenv(faultEnv); fault != "" {
		failToTakeOver(fault)
		os.Exit(3)
	}
}

// badProgram is a program with a good configuration that fails in the given way. Started without anything to take over
// it is the real one.
func badProgram(t *testing.T, n *lab.Node, fault string) string {
	t.Helper()
	self, err := os.Executable()
	labtest.Must(t, err)
	path := filepath.Join(n.Dir(), "saltclusterd-"+fault)
	text := fmt.Sprintf("#!/bin/sh\ncase \"$SALTCLUSTERD_TAKEOVER $*\" in ' '*) exec %s \"$@\";; esac\n%s=%s exec %s\n",
		n.Daemon.Argv[0], faultEnv, fault, self)
	labtest.Must(t, os.WriteFile(path, []byte(text), 0o755))
	return path
}

// failToTakeOver speaks the new process's part (cmd/saltclusterd/daemon) up to where the fault is.
func failToTakeOver(fault string) {
	if fault == "dies" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	const sayHello, sayPrepared, sayRefuse = 1, 3, 4
	c, err := handover.Inherit(3)
	if err != nil {
		panic(err)
	}
	e := &handover.Encoder{}
	if fault == "foreign" {
		e.Uint(handover.StateVersion + 1)
	} else {
		e.Uint(handover.StateVersion)
	}
	e.String("faulty")
	if err := c.Send(ctx, sayHello, e.Record()); err != nil {
		panic(err)
	}
	if _, err := c.Receive(ctx); err != nil { // what can be told beforehand
		panic(err)
	}
	if fault == "refuses" {
		_ = c.Send(ctx, sayRefuse, []byte("it does not like this"))
		return
	}
	if err := c.Send(ctx, sayPrepared, nil); err != nil {
		panic(err)
	}
	for range 3 { // both edges and the rest
		if _, err := c.Receive(ctx); err != nil {
			panic(err)
		}
	}
	if fault == "panics" {
		panic("taken over and lost")
	}
	<-ctx.Done() // hangs
}
