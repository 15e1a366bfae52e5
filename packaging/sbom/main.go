package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	out := flag.String("o", "", "where the document is written; empty: standard output")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: sbom [-o FILE] PROGRAM...")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(out string, paths []string) error {
	var programs []program
	for _, path := range paths {
		p, err := inspect(path)
		if err != nil {
			return err
		}
		programs = append(programs, p)
	}
	text, err := describe(programs)
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
