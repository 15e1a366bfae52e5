package main

import (
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
)

// Errors of programs that are not what is promised.
var (
	errCgo      = errors.New("it was built with cgo")
	errDynamic  = errors.New("it is linked with a library other than libc")
	errReplaced = errors.New("a module of it is replaced")
	errNoSum    = errors.New("a module of it has no checksum")
)

// program is a built command and what it says about itself.
type program struct {
	name string
	info *debug.BuildInfo
}

// inspect reads a program and refuses one that breaks a promise.
func inspect(path string) (program, error) {
	p := program{name: filepath.Base(path)}
	var err error
	if p.info, err = buildinfo.ReadFile(path); err != nil {
		return p, fmt.Errorf("read %s: %w", path, err)
	}
	if err := errors.Join(check(p.info), linked(path)); err != nil {
		return p, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// setting is a setting of the build, empty when it is not told.
func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

func check(info *debug.BuildInfo) error {
	if setting(info, "CGO_ENABLED") != "0" {
		return errCgo
	}
	for _, m := range info.Deps {
		switch {
		case m.Replace != nil:
			return fmt.Errorf("%w: %s", errReplaced, m.Path)
		case m.Sum == "":
			return fmt.Errorf("%w: %s", errNoSum, m.Path)
		}
	}
	return nil
}

// libc are the libraries that every host with glibc has. What saltclusterd loads at run time it can do without.
var libc = []string{"libc.so.6", "libdl.so.2", "libpthread.so.0"}

// linked refuses a program that needs more than libc to start.
func linked(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("read the program: %w", err)
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("read the program: %w", err)
	}
	for _, library := range needed {
		if !slices.Contains(libc, library) {
			return fmt.Errorf("%w: %s", errDynamic, library)
		}
	}
	return nil
}
