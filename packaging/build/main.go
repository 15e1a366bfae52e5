package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// nfpmModule is pinned: another version may make other bytes. It is the last one whose modules all proxies have.
const nfpmModule = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.4"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "packages:", err)
		os.Exit(1)
	}
}

// builder makes the packages of one version.
type builder struct {
	root    string // of the module
	out     string
	version string
	epoch   time.Time
	arches  []string
	formats []string
	gocmd   string
	nfpm    string   // path of the program
	made    []string // files in out
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	out := flags.String("out", "dist", "`directory` for the packages")
	version := flags.String("version", "", "`version` of the packages; default: what packaging/version prints")
	arches := flags.String("arch", "amd64,arm64", "`architectures`")
	formats := flags.String("format", "deb,rpm,tar.gz", "`formats`")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	b := &builder{root: root, version: *version, arches: strings.Split(*arches, ","),
		formats: strings.Split(*formats, ","), gocmd: "go"}
	if b.out, err = filepath.Abs(*out); err != nil {
		return err
	}
	if b.version == "" {
		if b.version, err = b.runOutput(ctx, nil, filepath.Join(root, "packaging/version")); err != nil {
			return err
		}
	}
	if b.epoch, err = b.commitTime(ctx); err != nil {
		return err
	}
	return b.buildAll(ctx)
}

func moduleRoot(ctx context.Context) (string, error) {
	mod, err := (&builder{}).runOutput(ctx, nil, "go", "env", "GOMOD")
	if err != nil {
		return "", err
	}
	return filepath.Dir(mod), nil
}

func (b *builder) buildAll(ctx context.Context) error {
	say("saltclusterd %s, %s", b.version, b.epoch.Format(time.RFC3339))
	if err := b.removeOld(); err != nil {
		return err
	}
	items, err := readItems(filepath.Join(b.root, "packaging/nfpm.yaml"))
	if err != nil {
		return err
	}
	if err := b.getNfpm(ctx); err != nil {
		return err
	}
	shared, err := b.buildShared(ctx)
	if err != nil {
		return err
	}
	for _, arch := range b.arches {
		stage, err := b.stageFiles(ctx, arch, shared)
		if err != nil {
			return err
		}
		if err := checkItems(items, stage); err != nil {
			return err
		}
		for _, format := range b.formats {
			if err := b.packFormat(ctx, arch, format, stage, items); err != nil {
				return err
			}
		}
	}
	if err := os.RemoveAll(filepath.Join(b.out, "stage")); err != nil {
		return err
	}
	return b.writeSums()
}

// removeOld removes what a run before has made, and nothing else.
func (b *builder) removeOld() error {
	for _, pattern := range []string{"saltclusterd_*.deb", "saltclusterd-*.rpm", "saltclusterd-*.tar.gz",
		"saltclusterd-*.cdx.json", sumsName, "stage"} {
		old, err := filepath.Glob(filepath.Join(b.out, pattern))
		if err != nil {
			return err
		}
		for _, path := range old {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		}
	}
	return os.MkdirAll(b.out, 0o755)
}

// packFormat makes one package.
func (b *builder) packFormat(ctx context.Context, arch, format, stage string, items []item) error {
	name := b.fileName(arch, format)
	path := filepath.Join(b.out, name)
	b.made = append(b.made, name)
	if format == "tar.gz" {
		if err := writeArchive(path, fmt.Sprintf("saltclusterd-%s-linux-%s", b.version, arch), stage, items,
			b.epoch); err != nil {
			return fmt.Errorf("make %s: %w", name, err)
		}
		say("%s", name)
		return nil
	}
	env := append(b.nfpmEnv(), "ARCH="+arch, "VERSION="+b.version)
	c := b.newCommand(ctx, env, b.nfpm, "package", "--config", filepath.Join(b.root, "packaging/nfpm.yaml"), "--packager",
		format, "--target", path)
	c.Dir = stage
	if err := c.Run(); err != nil {
		return fmt.Errorf("make %s: %w", name, err)
	}
	say("%s", name)
	return nil
}

// fileName is as each world has it.
func (b *builder) fileName(arch, format string) string {
	switch format {
	case "deb":
		return fmt.Sprintf("saltclusterd_%s_%s.deb", b.version, arch)
	case "rpm":
		return fmt.Sprintf("saltclusterd-%s-1.%s.rpm", b.version,
			map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[arch])
	}
	return fmt.Sprintf("saltclusterd-%s-linux-%s.%s", b.version, arch, format)
}

// commitTime is SOURCE_DATE_EPOCH, or when the commit was made.
func (b *builder) commitTime(ctx context.Context) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		var err error
		if text, err = b.runOutput(ctx, nil, "git", "-C", b.root, "log", "-1", "--format=%ct"); err != nil {
			return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH is not set, and the time of the commit is unknown: %w", err)
		}
	}
	var sec int64
	if _, err := fmt.Sscanf(text, "%d", &sec); err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH=%q is not a time", text)
	}
	return time.Unix(sec, 0).UTC(), nil
}

// getNfpm installs the pinned version once, below bin.
func (b *builder) getNfpm(ctx context.Context) error {
	_, version, _ := strings.Cut(nfpmModule, "@")
	dir := filepath.Join(b.root, "bin/nfpm-"+version)
	b.nfpm = filepath.Join(dir, "nfpm")
	if _, err := os.Stat(b.nfpm); err == nil {
		return nil
	}
	say("installing nfpm %s", version)
	c := b.newCommand(ctx, append(os.Environ(), "GOBIN="+dir, "GOFLAGS=", "CGO_ENABLED=0"), b.gocmd, "install", nfpmModule)
	if err := c.Run(); err != nil {
		return fmt.Errorf("install nfpm: %w", err)
	}
	return nil
}

// nfpmEnv is this process's, with the time that nfpm shall write.
func (b *builder) nfpmEnv() []string {
	return append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", b.epoch.Unix()))
}

func (b *builder) newCommand(ctx context.Context, env []string, argv ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Dir, c.Env, c.Stderr = b.root, env, os.Stderr
	return c
}

// runOutput runs a command and returns what it prints, without the line's end.
func (b *builder) runOutput(ctx context.Context, env []string, argv ...string) (string, error) {
	out, err := b.newCommand(ctx, env, argv...).Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "packages: "+format+"\n", args...) }
