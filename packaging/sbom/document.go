package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The parts of CycloneDX 1.6 that are used (https://cyclonedx.org/docs/1.6/json/).
type document struct {
	Schema       string       `json:"$schema"`
	BOMFormat    string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	SerialNumber string       `json:"serialNumber"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Timestamp string     `json:"timestamp,omitempty"` // of the commit, when it is known
	Lifecycle []phase    `json:"lifecycles"`
	Component component  `json:"component"`
	Property  []property `json:"properties,omitempty"`
}

type phase struct {
	Phase string `json:"phase"`
}

type component struct {
	Type     string     `json:"type"`
	Ref      string     `json:"bom-ref"`
	Name     string     `json:"name"`
	Version  string     `json:"version,omitempty"`
	License  []licensed `json:"licenses,omitempty"`
	PURL     string     `json:"purl"`
	Property []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn,omitempty"`
}

const (
	library  = "library"
	standard = "std" // Go's own
)

// settingsTold are those settings of the build that say what is in a program, not where it was made.
var settingsTold = []string{"CGO_ENABLED", "GOOS", "GOARCH", "GOAMD64", "GOARM64", "-trimpath", "-tags", "-ldflags", "vcs.revision", "vcs.modified"}

// describe makes the document about programs, of which the first is its subject.
func describe(programs []program, r release) ([]byte, error) {
	main := programs[0].info
	if r.version == "" {
		r.version = version(main.Main.Version)
	}
	if at, err := time.Parse(time.RFC3339, setting(main, "vcs.time")); err == nil && r.at.IsZero() {
		r.at = at
	}
	d := document{
		Schema: "http://cyclonedx.org/schema/bom-1.6.schema.json", BOMFormat: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata: metadata{
			Lifecycle: []phase{{"post-build"}},
			Component: newComponent("application", main.Main.Path, r.version),
		},
	}
	for _, key := range settingsTold {
		if v := setting(main, key); v != "" {
			d.Metadata.Property = append(d.Metadata.Property, property{"go:build:" + key, v})
		}
	}
	if !r.at.IsZero() {
		d.Metadata.Timestamp = r.at.UTC().Format(time.RFC3339)
	}
	var err error
	if d.Components, err = components(programs); err != nil {
		return nil, err
	}
	if err := license(&d, r.modules); err != nil {
		return nil, err
	}
	all := dependency{Ref: d.Metadata.Component.Ref}
	for _, c := range d.Components {
		all.DependsOn = append(all.DependsOn, c.Ref)
		d.Dependencies = append(d.Dependencies, dependency{Ref: c.Ref})
	}
	d.Dependencies = append([]dependency{all}, d.Dependencies...)
	if d.SerialNumber, err = serial(d); err != nil {
		return nil, err
	}
	return encode(d)
}

// errDiffer means that programs do not belong together.
var errDiffer = errors.New("the programs were not built together")

// components are the modules in any of the programs, and Go's standard library.
func components(programs []program) ([]component, error) {
	byPath := map[string]component{}
	add := func(p program, path, version, sum string) error {
		c, seen := byPath[path]
		if !seen {
			c = newComponent(library, path, version)
			if sum != "" {
				c.Property = append(c.Property, property{"go:sum", sum})
			}
		}
		if c.Version != version {
			return fmt.Errorf("%w: %s is in them as %s and as %s", errDiffer, path, c.Version, version)
		}
		c.Property = append(slices.Clone(c.Property), property{"saltclusterd:program", p.name})
		byPath[path] = c
		return nil
	}
	for _, p := range programs {
		goVersion, _, _ := strings.Cut(strings.TrimPrefix(p.info.GoVersion, "go"), " ")
		if err := add(p, standard, goVersion, ""); err != nil {
			return nil, err
		}
		for _, m := range p.info.Deps {
			if err := add(p, m.Path, m.Version, m.Sum); err != nil {
				return nil, err
			}
		}
	}
	var out []component
	for _, c := range byPath {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b component) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func newComponent(kind, path, version string) component {
	purl := "pkg:golang/" + path
	if version != "" {
		purl += "@" + strings.ReplaceAll(version, "+", "%2B")
	}
	return component{Type: kind, Ref: purl, Name: path, Version: version, PURL: purl}
}

// version of the main module: "(devel)" says nothing.
func version(v string) string {
	if v == "(devel)" {
		return ""
	}
	return v
}

// serial is a UUID (version 8) that follows from what the document says.
func serial(d document) (string, error) {
	text, err := encode(d)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	u := sum[:16]
	u[6], u[8] = u[6]&0x0f|0x80, u[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]), nil
}

func encode(d document) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(d); err != nil {
		return nil, fmt.Errorf("encode the bill of materials: %w", err)
	}
	return b.Bytes(), nil
}
