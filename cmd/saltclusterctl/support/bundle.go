package support

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterctl/doctor"
	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/adminapi"
)

func NewBundleCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: "bundle", ArgsUsage: "FILE",
		Usage: "write the information needed to help with a problem to FILE (tar.gz)",
		Description: "It contains status, members, ring, options, roots, the findings of doctor, stack traces and the newest log lines. It\n" +
			"contains no secrets and no private keys: they are not collected, and whatever looks like one is blanked out. It does contain\n" +
			"names and addresses of hosts and minions: review it before you send it to anyone.",
		Flags: []cli.Flag{
			&cli.IntFlag{Name: "count", Aliases: []string{"n", "lines"}, Value: 5000, Usage: "include the newest `N` lines of the log; 0: none"},
			&cli.StringFlag{Name: "log", Usage: "read the log from `FILE`",
				DefaultText: "the journal; without systemd, where OpenRC or runit write it"},
		},
		Action: console.WithOneArg(e, "saltclusterctl bundle /root/bundle.tar.gz",
			"bundle takes the name of the file to write", func(c *cli.Context, e *console.Env) error {
				return runBundle(c, e, c.Args().First())
			}),
	})
}

// bundled is what the verb shows.
type bundled struct {
	File    string   `json:"file"`
	Parts   []string `json:"parts"`
	Missing []string `json:"missing,omitempty"` // what could not be collected, and why
	Bytes   int      `json:"bytes"`
}

func runBundle(c *cli.Context, e *console.Env, path string) error {
	b := &bundle{c: c, e: e, when: time.Now(), scrub: newScrubber(e.ConfigPath(c))}
	done := e.ShowWaiting("collecting; a part that cannot be collected says why")
	b.collectParts()
	done()
	raw, err := b.packParts()
	if err != nil {
		return err
	}
	if err := console.WriteNew(path, raw); err != nil {
		return fmt.Errorf("write the bundle: %w", err)
	}
	out := bundled{File: path, Bytes: len(raw), Missing: b.missing}
	for _, p := range b.parts {
		out.Parts = append(out.Parts, p.name)
	}
	return e.PrintValue(c, out, func(s *console.Screen) {
		s.Line("%s: %s, %d KiB", console.Clean(path), wording.Plural(len(out.Parts), "part"), (len(raw)+1023)/1024)
		for _, what := range out.Missing {
			s.Line("missing: %s", console.Clean(what))
		}
		s.Line("secrets are blanked out; names and addresses are not: review it before you send it to anyone")
	})
}

type bundle struct {
	c     *cli.Context
	e     *console.Env
	when  time.Time
	scrub *Scrubber
	parts []part

	missing []string
}

type part struct {
	name string
	text []byte
}

// collectParts asks for everything; what cannot be had is a part that says why.
func (b *bundle) collectParts() {
	client := b.e.OpenClient(b.c)
	defer client.Close()
	gatherPart(b, client, "version", (*adminapi.Client).Version)
	gatherPart(b, client, "status", (*adminapi.Client).Status)
	gatherPart(b, client, "ring", func(c *adminapi.Client, ctx context.Context) (adminapi.RingInfo, error) {
		return c.RingInfo(ctx, adminapi.RingQuery{})
	})
	gatherPart(b, client, "config", (*adminapi.Client).Config)
	gatherPart(b, client, "roots", (*adminapi.Client).RootsStatus)
	gatherPart(b, client, "roots-history", (*adminapi.Client).RootsHistory)
	gatherPart(b, client, "checkup", (*adminapi.Client).Checkup)
	gatherPart(b, client, "keys", func(c *adminapi.Client, ctx context.Context) (adminapi.Keys, error) {
		return c.Keys(ctx, adminapi.KeyQuery{History: true, Limit: 1000})
	})
	var goroutines bytes.Buffer
	ctx, cancel := context.WithTimeout(b.c.Context, console.AskTimeout)
	defer cancel()
	if err := client.Profile(ctx, adminapi.ProfileQuery{Kind: adminapi.ProfileGoroutines, Text: true},
		&goroutines); err != nil {
		b.addMissing("goroutines", err)
	} else {
		b.addPart("goroutines.txt", goroutines.Bytes())
	}
	p := &examination{c: b.c, e: b.e, proc: "/proc"}
	p.examineAll()
	b.addPart("doctor.json", asJSON(doctor.NewReport(p.checkup.Node, p.found)))
	if n := b.c.Int("count"); n > 0 {
		text, err := readLog(b.c.Context, b.e, b.c.String("log"), n)
		if len(text) > 0 {
			b.addPart("log.txt", text)
		}
		if err != nil {
			b.addMissing("log", err)
		}
	}
}

func gatherPart[T any](b *bundle, client *adminapi.Client, name string,
	call func(*adminapi.Client, context.Context) (T, error)) {
	ctx, cancel := context.WithTimeout(b.c.Context, console.AskTimeout)
	defer cancel()
	v, err := call(client, ctx)
	if err != nil {
		b.addMissing(name, err)
		return
	}
	b.addPart(name+".json", asJSON(v))
}

func (b *bundle) addPart(name string, text []byte) {
	b.parts = append(b.parts, part{name, b.scrub.ScrubText(text)})
}

// addMissing adds a part that says why another one is missing.
func (b *bundle) addMissing(name string, err error) {
	b.missing = append(b.missing, string(b.scrub.ScrubText([]byte(name+": "+err.Error()))))
	b.addPart(name+".error.txt", []byte(err.Error()+"\n"))
}

func asJSON(v any) []byte {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return []byte(err.Error())
	}
	return append(raw, '\n')
}

func (b *bundle) packParts() ([]byte, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	t := tar.NewWriter(z)
	for _, p := range b.parts {
		h := &tar.Header{Name: "saltclusterd-bundle/" + p.name, Mode: 0o600, Size: int64(len(p.text)), ModTime: b.when}
		if err := t.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("write the bundle: %w", err)
		}
		if _, err := t.Write(p.text); err != nil {
			return nil, fmt.Errorf("write the bundle: %w", err)
		}
	}
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return nil, fmt.Errorf("write the bundle: %w", err)
	}
	return out.Bytes(), nil
}

// Scrubber blanks out what must not leave the host, should it ever be somewhere that it does not belong: nothing that
// is collected holds it.
type Scrubber struct{ Known [][]byte }

var (
	privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----`)
	assigned   = regexp.MustCompile(`(?i)((?:secret|password|passwd|token|key_pass)["']?\s*[:=]\s*["']?)([^\s"',}]{8,})`)
)

const blank = "[redacted]"

func newScrubber(configPath string) *Scrubber {
	s := &Scrubber{}
	cfg, _ := config.Load(configPath) // with other mistakes in it, too
	if secret := cfg.Cluster.Secret.Reveal(); len(secret) >= 8 {
		s.Known = append(s.Known, []byte(secret))
	}
	return s
}

func (s *Scrubber) ScrubText(text []byte) []byte {
	for _, known := range s.Known {
		text = bytes.ReplaceAll(text, known, []byte(blank))
	}
	text = privateKey.ReplaceAll(text, []byte(blank))
	return assigned.ReplaceAll(text, []byte("${1}"+blank))
}
