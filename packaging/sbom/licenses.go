package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

var errUnknownLicense = errors.New("a module of it has no license that is known")

// licensed is one of those that a component is under, by its name in SPDX.
type licensed struct {
	License struct {
		ID string `json:"id"`
	} `json:"license"`
}

// Licenses of what is in no module's directory.
const (
	ownLicense = "Apache-2.0"
	goLicense  = "BSD-3-Clause"
)

// license says what everything is under, as far as it is known where its modules are.
func license(d *document, modules string) error {
	d.Metadata.Component.under(ownLicense)
	for i := range d.Components {
		c := &d.Components[i]
		switch {
		case c.Name == standard:
			c.under(goLicense)
		case modules != "":
			ids, err := moduleLicenses(modules, c.Name, c.Version)
			if err != nil {
				return err
			}
			c.under(ids...)
		}
	}
	return nil
}

// licenseSays are words that stand in a license and in no other of these; without commas, of which authors have views.
var licenseSays = []struct{ id, with, without string }{
	{"Apache-2.0", "apache license version 2.0", ""},
	{"BSD-2-Clause", "redistribution and use in source and binary forms", "neither the name"},
	{"BSD-3-Clause", "neither the name", ""},
	{"ISC", "permission to use copy modify and/or distribute", ""},
	{"MIT", "permission is hereby granted free of charge", ""},
	{"MPL-2.0", "mozilla public license version 2.0", ""},
}

// licenses are those that a text has the words of. A module with parts of others has several.
func licenses(text string) (ids []string) {
	text = strings.ToLower(strings.Join(strings.Fields(strings.ReplaceAll(text, ",", "")), " "))
	for _, l := range licenseSays {
		if strings.Contains(text, l.with) && (l.without == "" || !strings.Contains(text, l.without)) {
			ids = append(ids, l.id)
		}
	}
	return ids
}

// licenseFile matches the files in which they are.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying)([-._].*)?$`)

// moduleLicenses are those of a module, which is where the go command keeps what it was built from.
func moduleLicenses(modules, path, version string) ([]string, error) {
	dir := filepath.Join(modules, escaped(path)+"@"+escaped(version))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("licenses of %s: %w", path, err)
	}
	var all strings.Builder
	for _, e := range entries {
		if e.IsDir() || !licenseFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("licenses of %s: %w", path, err)
		}
		all.Write(append(text, '\n'))
	}
	ids := licenses(all.String())
	if len(ids) == 0 {
		return nil, fmt.Errorf("%w: %s", errUnknownLicense, path)
	}
	return ids, nil
}

// escaped is how the go command writes a path or a version in names of directories: with a mark before each capital.
func escaped(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsUpper(r) {
			b.WriteByte('!')
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return b.String()
}

// under adds licenses to a component.
func (c *component) under(ids ...string) {
	for _, id := range ids {
		var l licensed
		l.License.ID = id
		c.License = append(c.License, l)
	}
}
