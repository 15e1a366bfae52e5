// Command saltclusterd runs beside each stock salt-master of a cluster. Together they answer minions as one master.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"saltclusterd/cmd/saltclusterd/generator"
)

// stopSignals returns a context that ends with the first signal to stop, and one that ends with the second.
func stopSignals() (first, second context.Context) {
	first, stop := context.WithCancel(context.Background())
	second, hurry := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() { // as long as the process
		<-signals
		stop()
		<-signals
		hurry()
	}()
	return first, second
}

// runGenerator is what this program does for systemd under another name.
func runGenerator(args []string) {
	if err := generator.Run(args); err != nil {
		fmt.Fprintln(os.Stderr, generator.Name+":", err)
		os.Exit(exitFailure)
	}
}

func main() {
	if filepath.Base(os.Args[0]) == generator.Name {
		runGenerator(os.Args[1:])
		return
	}
	if err := forbidCoreDumps(); err != nil {
		fmt.Fprintln(os.Stderr, "saltclusterd:", err)
	}
	ctx, graceful := stopSignals()
	if err := run(ctx, graceful, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "saltclusterd:", err)
		os.Exit(exitCode(err))
	}
}
