// Command saltclusterd runs beside a stock salt-master and makes any number of them answer as one.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
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

func main() {
	ctx, patience := stopSignals()
	if err := run(ctx, patience, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "saltclusterd:", err)
		os.Exit(exitCode(err))
	}
}
