package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"saltclusterd/cmd/saltclusterctl/console"
)

// version is set by the linker (-X main.version=...); a plain go build takes it from the build information.
var version string

func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], console.SystemEnv()))
}
