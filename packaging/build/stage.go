package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
)

// copies are files of the project that are in packages as they are: name below the stage, name in the project.
var copies = map[string]string{
	"saltclusterd.service":      "packaging/saltclusterd.service",
	"system/sysusers.conf":      "packaging/system/sysusers.conf",
	"system/sysctl.conf":        "packaging/system/sysctl.conf",
	"scripts/postinstall":       "packaging/scripts/postinstall",
	"scripts/preremove":         "packaging/scripts/preremove",
	"scripts/postremove":        "packaging/scripts/postremove",
	"monitoring/alerts.yml":     "packaging/monitoring/alerts.yml",
	"monitoring/scrape.yml":     "packaging/monitoring/scrape.yml",
	"monitoring/dashboard.json": "packaging/monitoring/dashboard.json",
	"examples/keepalived.conf":  "packaging/examples/keepalived.conf",
	"examples/kubernetes.yaml":  "packaging/kubernetes/saltclusterd.yaml",
	"examples/serve":            "packaging/container/bin/serve",
	"doc/copyright":             "packaging/copyright",
	"doc/README.md":             "README.md",
	"doc/LICENSE":               "LICENSE",
	"examples/site.conf":        exampleConfig,
	"examples/master.conf":      "packaging/examples/master.conf",
	"runners/cluster.py":        "packaging/runners/cluster.py",
	"runners/manage.py":         "packaging/runners/manage.py",
	"wheel/minions.py":          "packaging/wheel/minions.py",
}

// trees are directories of the project that are in packages as they are, named in the same way.
var trees = map[string]string{"formula": "packaging/formula", "doc/docs": "docs"}

// forDevelopers are the pages which no operator needs.
const forDevelopers = "docs/dev"

// listCopies is copies with what is in the trees.
func listCopies(root string) (map[string]string, error) {
	all := maps.Clone(copies)
	for to, from := range trees {
		err := fs.WalkDir(os.DirFS(filepath.Join(root, from)), ".", func(name string, d fs.DirEntry, err error) error {
			if from+"/"+name == forDevelopers {
				return fs.SkipDir
			}
			if err == nil && !d.IsDir() && path.Ext(name) != ".txt" { // of which pictures are made
				all[to+"/"+name] = from + "/" + name
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// exampleConfig is what a node of the examples is told.
const exampleConfig = "packaging/examples/site.conf"

// printed are files that the programs print themselves; a name that ends in .gz is compressed.
var printed = map[string][]string{
	"saltclusterd.conf":          {"saltclusterctl", "config", "default"},
	"man/saltclusterctl.1.gz":    {"saltclusterctl", "manual", "saltclusterctl"},
	"man/saltclusterd.conf.5.gz": {"saltclusterctl", "manual", "saltclusterd.conf"},
	"man/saltclusterd.8.gz":      {"saltclusterd", "--manual"},
	"completion/bash":            {"saltclusterctl", "completion", "bash"},
	"completion/zsh":             {"saltclusterctl", "completion", "zsh"},
	"completion/fish":            {"saltclusterctl", "completion", "fish"},
	"examples/haproxy.cfg": {
		"saltclusterctl", "haproxy", "--config", exampleConfig, "--server", "m1=10.0.0.11", "--server", "m2=10.0.0.12",
		"--server", "m3=10.0.0.13",
	},
}

// buildShared makes what is the same for all architectures: name below the stage, content.
func (b *builder) buildShared(ctx context.Context) (map[string][]byte, error) {
	out := map[string][]byte{}
	all, err := listCopies(b.root)
	if err != nil {
		return nil, err
	}
	for to, from := range all {
		text, err := os.ReadFile(filepath.Join(b.root, from))
		if err != nil {
			return nil, err
		}
		out[to] = text
	}
	host := filepath.Join(b.out, "stage/host")
	if err := b.compilePrograms(ctx, "", host, append(programs, "packaging/sbom")...); err != nil {
		return nil, err
	}
	for to, argv := range printed {
		text, err := b.newCommand(ctx, nil, append([]string{filepath.Join(host, argv[0])}, argv[1:]...)...).Output()
		if err != nil {
			return nil, fmt.Errorf("print %s: %w", to, err)
		}
		out[to] = text
	}
	changes, err := os.ReadFile(filepath.Join(b.root, "CHANGELOG.md"))
	if err != nil {
		return nil, err
	}
	out["doc/changelog.gz"] = changes
	if out["doc/third-party-licenses.gz"], err = b.collectLicenses(ctx); err != nil {
		return nil, err
	}
	for name, text := range out {
		if filepath.Ext(name) == ".gz" {
			if out[name], err = compressText(text); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// stageFiles lays out what the packages of an architecture are made of.
func (b *builder) stageFiles(ctx context.Context, arch string, shared map[string][]byte) (string, error) {
	stage := filepath.Join(b.out, "stage", arch)
	if err := b.compilePrograms(ctx, arch, filepath.Join(stage, "usr/bin"), programs...); err != nil {
		return "", err
	}
	if err := b.writeBill(ctx, arch, stage); err != nil {
		return "", err
	}
	for name, text := range shared {
		path := filepath.Join(stage, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return "", err
		}
	}
	// nfpm writes down these times
	return stage, filepath.WalkDir(stage, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = os.Chtimes(path, b.epoch, b.epoch)
		}
		return err
	})
}

// writeBill writes what is in the programs of an architecture: a file of the packages, and one beside them.
func (b *builder) writeBill(ctx context.Context, arch, stage string) error {
	argv := []string{filepath.Join(b.out, "stage/host/sbom"), "-version", b.version, "-o",
		filepath.Join(stage, "doc/sbom.cdx.json")}
	for _, p := range programs {
		argv = append(argv, filepath.Join(stage, "usr/bin", filepath.Base(p)))
	}
	if err := b.newCommand(ctx, b.nfpmEnv(), argv...).Run(); err != nil {
		return fmt.Errorf("bill of materials for %s: %w", arch, err)
	}
	text, err := os.ReadFile(filepath.Join(stage, "doc/sbom.cdx.json"))
	if err != nil {
		return err
	}
	name := b.fileName(arch, "cdx.json")
	b.made = append(b.made, name)
	return os.WriteFile(filepath.Join(b.out, name), text, 0o644)
}

// programs are what is installed.
var programs = []string{"cmd/saltclusterd", "cmd/saltclusterctl"}

// compilePrograms builds commands; an empty arch means this machine.
func (b *builder) compilePrograms(ctx context.Context, arch, into string, commands ...string) error {
	if err := os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	env := append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0")
	if arch != "" {
		env = append(env, "GOOS=linux", "GOARCH="+arch)
	}
	argv := []string{b.gocmd, "build", "-trimpath", "-buildvcs=false", "-ldflags",
		"-s -w -buildid= -X saltclusterd/cmd/buildversion.linked=" + b.version, "-o", into + "/"}
	for _, c := range commands {
		argv = append(argv, "./"+c)
	}
	if err := b.newCommand(ctx, env, argv...).Run(); err != nil {
		return fmt.Errorf("compile for %s: %w", arch, err)
	}
	return nil
}

// compressText is gzip -9n.
func compressText(text []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(text); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
