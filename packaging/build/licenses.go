package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// goLicense is Go's own; not every way to install Go brings it along.
//
//go:embed go-license.txt
var goLicense []byte

// licenseName matches the files that a module's authors want to be passed on.
var licenseName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([-._].*)?$`)

type module struct {
	Path, Version, Dir string
	Main               bool
}

// collectLicenses is the text of all licenses of what is compiled into the programs: Go itself and the modules.
func (b *builder) collectLicenses(ctx context.Context) ([]byte, error) {
	out, err := b.newCommand(ctx, append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux"), b.gocmd, "list", "-deps",
		"-json=Module",
		"./cmd/saltclusterd", "./cmd/saltclusterctl").Output()
	if err != nil {
		return nil, fmt.Errorf("list modules: %w", err)
	}
	modules := map[string]module{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ Module *module }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("list modules: %w", err)
		}
		if p.Module != nil && !p.Module.Main {
			modules[p.Module.Path] = *p.Module
		}
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, "==== The Go programming language\n\n%s\n\n", bytes.TrimSpace(goLicense))
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		if err := modules[path].writeLicenses(&text); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

func (m module) writeLicenses(w *bytes.Buffer) error {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return fmt.Errorf("licenses of %s: %w", m.Path, err)
	}
	found := 0
	for _, e := range entries { // in order
		if e.IsDir() || !licenseName.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.Dir, e.Name()))
		if err != nil {
			return err
		}
		found++
		fmt.Fprintf(w, "==== %s %s: %s\n\n%s\n\n", m.Path, m.Version, e.Name(), bytes.TrimSpace(text))
	}
	if found == 0 {
		return fmt.Errorf("%s %s has no license that could be passed on", m.Path, m.Version)
	}
	return nil
}
