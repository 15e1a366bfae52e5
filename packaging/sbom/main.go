// Command sbom writes the bill of materials of programs as CycloneDX in JSON; "make sbom" runs it.
//
// The pinned cyclonedx-gomod reads each program (not go.mod, which lists test dependencies too). This command merges
// the documents into one whose subject is the first program, removes what depends on the machine, corrects licenses
// that the detection gets wrong, and fails when a program or a license breaks a promise of docs/reference/programs.md.
// The same programs give the same bytes.
package main

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tool is pinned: another version may write other bytes.
const tool = "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0"

// allowed are the licenses that a linked module may have.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0"}

// corrected are the licenses of modules for which the detection finds none, a wrong one, or one of several.
var corrected = map[string][]string{
	"saltclusterd":                    {"Apache-2.0"},
	"std":                             {"BSD-3-Clause"},
	"filippo.io/hpke":                 {"BSD-3-Clause"},
	"golang.org/x/crypto":             {"BSD-3-Clause"},
	"golang.org/x/net":                {"BSD-3-Clause"},
	"golang.org/x/sync":               {"BSD-3-Clause"},
	"golang.org/x/sys":                {"BSD-3-Clause"},
	"golang.org/x/text":               {"BSD-3-Clause"},
	"golang.org/x/time":               {"BSD-3-Clause"},
	"github.com/hashicorp/go-metrics": {"MIT"},
	"github.com/klauspost/compress":   {"Apache-2.0", "BSD-3-Clause", "MIT"},
	"go.yaml.in/yaml/v3":              {"Apache-2.0", "MIT"},
}

// libc are the libraries that every host with glibc has; a program may need no other ones to start.
var libc = []string{"libc.so.6", "libdl.so.2", "libpthread.so.0"}

// Errors of programs that are not what is promised.
var (
	errCgo      = errors.New("built with cgo")
	errDynamic  = errors.New("linked with a library other than libc")
	errReplaced = errors.New("replaced module")
	errNoSum    = errors.New("module without checksum")
	errLicense  = errors.New("license not allowed")
	errDiffer   = errors.New("programs not built together")
)

func main() {
	out := flag.String("o", "", "`FILE` for the document")
	version := flag.String("version", "v0.0.0", "`VERSION` of the programs")
	flag.Parse()
	if err := run(*out, *version, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(out, version string, programs []string) error {
	if out == "" || len(programs) == 0 {
		return errors.New("usage: sbom -o FILE [-version VERSION] PROGRAM")
	}
	var all document
	for _, path := range programs {
		if err := inspect(path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		d, err := describe(path, version)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		if err := all.merge(d); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	if epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		all.Metadata.Timestamp = time.Unix(epoch, 0).UTC().Format(time.RFC3339)
	}
	text, err := all.encode()
	if err != nil {
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

// inspect refuses a program that breaks a promise.
func inspect(path string) error {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return err
	}
	f, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if err != nil {
		return err
	}
	for _, library := range needed {
		if !slices.Contains(libc, library) {
			return fmt.Errorf("%w: %s", errDynamic, library)
		}
	}
	return check(info)
}

func check(info *debug.BuildInfo) error {
	if !slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "0"}) {
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

// document is CycloneDX; only the parts that are changed have types.
type document struct {
	Schema       string            `json:"$schema"`
	BOMFormat    string            `json:"bomFormat"`
	SpecVersion  string            `json:"specVersion"`
	Version      int               `json:"version"`
	Metadata     *metadata         `json:"metadata"`
	Components   []*component      `json:"components"`
	Dependencies []json.RawMessage `json:"dependencies"`
}

type metadata struct {
	Timestamp string `json:"timestamp,omitempty"`
	Tools     []struct {
		Name    string `json:"name"` // and checksums, which differ from machine to machine
		Version string `json:"version"`
	} `json:"tools"`
	Component  *component      `json:"component"`
	Properties json.RawMessage `json:"properties"`
}

type component struct {
	Type     string          `json:"type"`
	Ref      string          `json:"bom-ref"`
	Name     string          `json:"name"`
	Version  string          `json:"version"`
	Scope    string          `json:"scope,omitempty"`
	Hashes   json.RawMessage `json:"hashes,omitempty"`
	Licenses []license       `json:"licenses"`
	PURL     string          `json:"purl"`
}

type license struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

// describe runs the tool on one program.
func describe(path, version string) (d document, err error) {
	c := exec.Command("go", "run", tool, "bin", "-json", "-disable-html-escape", "-licenses", "-assert-licenses",
		"-std", "-noserial", "-notimestamp", "-version", version, path)
	c.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0")
	var warnings bytes.Buffer // of undetected licenses, which merge judges
	c.Stderr = &warnings
	text, err := c.Output()
	if err != nil {
		return d, fmt.Errorf("cyclonedx-gomod: %w\n%s", err, &warnings)
	}
	return d, json.Unmarshal(text, &d)
}

// merge adds the components of another program, with their licenses checked.
func (d *document) merge(of document) error {
	for _, c := range append(of.Components, of.Metadata.Component) {
		if ids := corrected[c.Name]; ids != nil {
			c.Licenses = make([]license, len(ids))
			for i, id := range ids {
				c.Licenses[i].License.ID = id
			}
		}
		if len(c.Licenses) == 0 {
			return fmt.Errorf("%w: none found for %s", errLicense, c.Name)
		}
		for _, l := range c.Licenses {
			if !slices.Contains(allowed, l.License.ID) {
				return fmt.Errorf("%w: %s of %s", errLicense, l.License.ID, c.Name)
			}
		}
	}
	if d.Metadata == nil { // the first program
		*d = of
		return nil
	}
	for _, c := range append(of.Components, of.Metadata.Component) {
		i := slices.IndexFunc(d.Components, func(o *component) bool { return o.Name == c.Name && o.Type == c.Type })
		switch {
		case i < 0:
			d.Components = append(d.Components, c)
		case d.Components[i].Version != c.Version:
			return fmt.Errorf("%w: %s as %s and as %s", errDiffer, c.Name, d.Components[i].Version, c.Version)
		}
	}
	slices.SortFunc(d.Components, func(a, b *component) int { return strings.Compare(a.Name, b.Name) })
	for _, dep := range of.Dependencies {
		if !slices.ContainsFunc(d.Dependencies, func(o json.RawMessage) bool { return bytes.Equal(o, dep) }) {
			d.Dependencies = append(d.Dependencies, dep)
		}
	}
	return nil
}

func (d *document) encode() ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(d); err != nil {
		return nil, fmt.Errorf("encode the bill of materials: %w", err)
	}
	return b.Bytes(), nil
}
