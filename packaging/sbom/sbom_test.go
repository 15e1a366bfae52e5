package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"testing"
	"time"
)

func built(change ...func(*debug.BuildInfo)) program {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.6 X:nocoverageredesign", Path: "saltclusterd/cmd/saltclusterd",
		Main: debug.Module{Path: "saltclusterd", Version: "v1.2.3"},
		Deps: []*debug.Module{
			{Path: "github.com/z/last", Version: "v1.0.0+incompatible", Sum: "h1:z"},
			{Path: "github.com/a/first", Version: "v0.1.0", Sum: "h1:a"},
		},
		Settings: []debug.BuildSetting{
			{Key: "CGO_ENABLED", Value: "0"}, {Key: "GOOS", Value: "linux"}, {Key: "-compiler", Value: "gc"},
			{Key: "vcs.time", Value: "2026-11-01T13:00:00+01:00"},
		},
	}
	for _, c := range change {
		c(info)
	}
	return program{name: "saltclusterd", info: info}
}

func TestDescribe(t *testing.T) {
	other := built(func(i *debug.BuildInfo) { i.Deps = i.Deps[1:] })
	other.name = "saltclusterctl"
	text, err := describe([]program{built(), other}, release{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := describe([]program{built(), other}, release{})
	if err != nil || !bytes.Equal(text, again) {
		t.Fatalf("the same programs, another document: %v", err)
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(d.SerialNumber) {
		t.Errorf("serial number %q", d.SerialNumber)
	}
	if d.Metadata.Timestamp != "2026-11-01T12:00:00Z" || d.Metadata.Component.PURL != "pkg:golang/saltclusterd@v1.2.3" {
		t.Errorf("metadata %+v", d.Metadata)
	}
	text, err = describe([]program{built(), other}, release{version: "0.9.0~dev1", at: time.Unix(1_700_000_000, 0)})
	if err != nil || !bytes.Contains(text, []byte(`"2023-11-14T22:13:20Z"`)) || !bytes.Contains(text, []byte(`"pkg:golang/saltclusterd@0.9.0~dev1"`)) {
		t.Errorf("of a package: %v\n%.600s", err, text)
	}
	var got []string
	for _, c := range d.Components {
		got = append(got, c.PURL)
		for _, p := range c.Property {
			got = append(got, p.Name+"="+p.Value)
		}
	}
	want := []string{
		"pkg:golang/github.com/a/first@v0.1.0", "go:sum=h1:a", "saltclusterd:program=saltclusterd", "saltclusterd:program=saltclusterctl",
		"pkg:golang/github.com/z/last@v1.0.0%2Bincompatible", "go:sum=h1:z", "saltclusterd:program=saltclusterd",
		"pkg:golang/std@1.26.6", "saltclusterd:program=saltclusterd", "saltclusterd:program=saltclusterctl",
	}
	if len(got) != len(want) {
		t.Fatalf("components\n%q, want\n%q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%q, want %q", got[i], want[i])
		}
	}
	if len(d.Dependencies) != 4 || len(d.Dependencies[0].DependsOn) != 3 {
		t.Errorf("dependencies %+v", d.Dependencies)
	}
}

func TestProgramsThatBreakPromises(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*debug.BuildInfo)
		want   error
	}{
		"good":     {func(*debug.BuildInfo) {}, nil},
		"cgo":      {func(i *debug.BuildInfo) { i.Settings[0].Value = "1" }, errCgo},
		"unknown":  {func(i *debug.BuildInfo) { i.Settings = nil }, errCgo},
		"replaced": {func(i *debug.BuildInfo) { i.Deps[0].Replace = &debug.Module{Path: "../there"} }, errReplaced},
		"no sum":   {func(i *debug.BuildInfo) { i.Deps[1].Sum = "" }, errNoSum},
	} {
		if err := check(built(c.change).info); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	newer := built(func(i *debug.BuildInfo) { i.Deps[1].Version = "v0.2.0" })
	if _, err := describe([]program{built(), newer}, release{}); !errors.Is(err, errDiffer) {
		t.Errorf("two versions of a module: %v", err)
	}
}

func TestWhatIsNoProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := inspect(path); err == nil {
		t.Error("a shell script has a bill of materials")
	}
	out := filepath.Join(t.TempDir(), "dist", "x.cdx.json")
	if err := run(out, release{}, []string{path}); err == nil {
		t.Error("a shell script has a bill of materials")
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("an error leaves a document behind")
	}
}

func TestLicenses(t *testing.T) {
	const mit = "Permission is hereby granted, free of charge, to any person"
	modules := t.TempDir()
	write := func(dir, name, text string) {
		t.Helper()
		dir = filepath.Join(modules, dir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("github.com/!big/x@v1.0.0-!r!c", "LICENSE", "                 Apache License\n           Version 2.0, January 2004\n")
	write("two@v1", "LICENSE", "Redistribution and use in source and binary\nforms\nNeither the name of")
	write("two@v1", "COPYING.md", mit)
	write("two@v1", "NOTICE", "Mozilla Public License, version 2.0")
	write("bsd@v1", "LICENCE", "Redistribution and use in source and binary forms")
	write("none@v1", "LICENSE", "All rights reserved.")
	for path, want := range map[[2]string]string{
		{"github.com/Big/x", "v1.0.0-RC"}: "[Apache-2.0]", {"two", "v1"}: "[BSD-3-Clause MIT]", {"bsd", "v1"}: "[BSD-2-Clause]",
	} {
		if got, err := moduleLicenses(modules, path[0], path[1]); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s: %v, %v, want %s", path, got, err, want)
		}
	}
	if _, err := moduleLicenses(modules, "none", "v1"); !errors.Is(err, errUnknownLicense) {
		t.Errorf("no license: %v", err)
	}
	if _, err := moduleLicenses(modules, "gone", "v1"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no module: %v", err)
	}
	write("github.com/a/first@v0.1.0", "LICENSE", mit)
	write("github.com/z/last@v1.0.0+incompatible", "LICENSE", mit)
	text, err := describe([]program{built()}, release{modules: modules})
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	for _, c := range append(d.Components, d.Metadata.Component) {
		if len(c.License) != 1 || c.License[0].License.ID == "" {
			t.Errorf("%s: %+v", c.Name, c.License)
		}
	}
}
