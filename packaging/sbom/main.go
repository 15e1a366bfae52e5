package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// release is what programs do not say about themselves: empty when they do.
type release struct {
	version string
	at      time.Time
	modules string // where the go command keeps modules, for their licenses; empty: those are not told
}

func main() {
	out := flag.String("o", "", "where the document is written; empty: standard output")
	version := flag.String("version", "", "`VERSION` of the package the programs are for; empty: what they say. SOURCE_DATE_EPOCH is when it was made")
	modules := flag.String("modules", "", "the `DIRECTORY` where the go command keeps modules (go env GOMODCACHE), for their licenses; empty: those are not told")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: sbom [-o FILE] [-version VERSION] [-modules DIRECTORY] PROGRAM...")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*out, release{version: *version, modules: *modules}, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(out string, r release, paths []string) error {
	if text := os.Getenv("SOURCE_DATE_EPOCH"); text != "" {
		sec, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("SOURCE_DATE_EPOCH=%q is no time", text)
		}
		r.at = time.Unix(sec, 0)
	}
	var programs []program
	for _, path := range paths {
		p, err := inspect(path)
		if err != nil {
			return err
		}
		programs = append(programs, p)
	}
	text, err := describe(programs, r)
	if err != nil {
		return err
	}
	if out == "" {
		_, err = os.Stdout.Write(text)
		return err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return fmt.Errorf("write the bill of materials: %w", err)
	}
	if err := os.WriteFile(out, text, 0o644); err != nil {
		return fmt.Errorf("write the bill of materials: %w", err)
	}
	return nil
}
