package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"saltclusterd/cmd/saltclusterctl/console"
)

func main() { runIn(console.SystemEnv()) }

// runIn runs the command line of this process and ends it.
func runIn(e *console.Env) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the second one ends it, whatever it waits for
	os.Exit(run(ctx, os.Args[1:], e))
}
