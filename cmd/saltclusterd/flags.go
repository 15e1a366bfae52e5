package main

import (
	"flag"
	"io"

	"saltclusterd/cmd/saltclusterd/config"
)

// options are what the command line says.
type options struct {
	config                 string
	check, version, manual bool
}

func newFlags(stderr io.Writer) (*flag.FlagSet, *options) {
	o := &options{}
	flags := flag.NewFlagSet("saltclusterd", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.config, "config", config.DefaultPath, "main configuration `file`; FILE.d/*.conf is read after it")
	flags.BoolVar(&o.check, "check", false, "check the configuration and exit")
	flags.BoolVar(&o.version, "version", false, "print the version and exit")
	flags.BoolVar(&o.manual, "manual", false, "print the manual page saltclusterd(8) and exit")
	return flags, o
}
