package keys

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/cmd/saltclusterctl/keyset"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/sidecar/adminapi"
)

func newKeysMergeCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name: "merge", ArgsUsage: "FILE...",
		Usage: "merge the minion keys of other salt-masters into the cluster: show them, resolve conflicts, and apply the result",
		Description: "FILEs come from keys collect. A key that only one side has is taken with its state; accepted or rejected wins over pending.\n" +
			"These are conflicts: another key for the same id, accepted on one side and rejected on the other, and keys that the cluster has\n" +
			"deleted. The command asks about each, or --take and --prefer decide; --yes decides none of them. The key that loses is denied.\n" +
			"Before a cluster exists it only shows the result of the FILEs, and treats the first one as the cluster.\n" +
			"SOURCE is cluster, or the name of a node as keys collect wrote it.",
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "take", Usage: "`MINION=SOURCE`: use the key that SOURCE has for this minion; may be repeated"},
			&cli.StringFlag{Name: "prefer", Usage: "use the key of `SOURCE` in all other conflicts"},
			&cli.BoolFlag{Name: "replace-key",
				Usage: "merge the keys of a salt-master with another master.pem as well; its minions must get the cluster's master.pub"},
			&cli.BoolFlag{Name: "all", Usage: "list all new keys, not only the first ones"},
			&cli.BoolFlag{Name: "dry-run", Usage: "change nothing, only show it; exit code 10 when a conflict is undecided"},
			console.YesFlag(),
		},
		Action: func(c *cli.Context) error {
			if c.NArg() == 0 {
				return console.Usagef("saltclusterctl keys merge m2.keys m3.keys", "keys merge takes files of keys collect")
			}
			return runKeysMerge(c, e)
		},
	})
}

// merged is what the verb shows.
type merged struct {
	// empty: there is none yet, and the first source stands for it
	Cluster  string                `json:"cluster,omitempty"`
	Identity string                `json:"identity,omitempty"`
	Sources  []mergedSource        `json:"sources"`
	Counts   map[keyset.Kind]int   `json:"counts"`
	Rows     []keyset.Row          `json:"rows"` // all but those that are the same
	Open     int                   `json:"open"` // conflicts that are not decided
	Done     int                   `json:"done"` // keys that were put
	Failed   []adminapi.DecidedKey `json:"failed"`

	names []string // of the columns
	puts  int
}

type mergedSource struct {
	Name     string         `json:"name"`
	File     string         `json:"file"`
	Identity string         `json:"identity,omitempty"`
	Counts   map[string]int `json:"counts"`

	text string
}

func runKeysMerge(c *cli.Context, e *console.Env) error {
	takes, err := parseTakes(c.StringSlice("take"))
	if err != nil {
		return err
	}
	out, sets := merged{}, []keyset.Set(nil)
	for _, path := range c.Args().Slice() {
		set, err := readSet(c.Context, path)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(sets, func(s keyset.Set) bool { return s.Name == set.Name }) {
			return console.Usagef("saltclusterctl keys collect --node ID gives it another name", "two files are from %s", set.Name)
		}
		sets = append(sets, set)
		out.Sources = append(out.Sources, mergedSource{set.Name, path, set.Identity, set.Counts(), sourceText(set, path)})
	}
	m, err := compareSets(e, c, &out, sets)
	if err != nil {
		return err
	}
	for _, t := range takes {
		if err := m.Take(t.id, t.source); err != nil {
			return console.Usagef("saltclusterctl keys merge --dry-run shows who has what", "--take %s=%s: %v", t.id, t.source, err)
		}
	}
	if from := c.String("prefer"); from != "" {
		if !slices.Contains(out.names, from) {
			return console.Usagef("--prefer "+strings.Join(out.names, ", --prefer "), "there is no source %q", from)
		}
		m.Prefer(from)
	}
	return mergeSets(e, c, &out, m)
}

type take struct{ id, source string }

func parseTakes(all []string) (out []take, err error) {
	for _, text := range all {
		at := strings.LastIndex(text, "=")
		if at <= 0 || at == len(text)-1 {
			return nil, console.Usagef("--take web1=m2", "--take %q is not MINION=SOURCE", text)
		}
		out = append(out, take{text[:at], text[at+1:]})
	}
	return out, nil
}

// compareSets puts the sets beside the cluster, or beside the first one of them while there is none.
func compareSets(e *console.Env, c *cli.Context, out *merged, sets []keyset.Set) (*keyset.Merge, error) {
	st, err := console.AskAdmin(c, e, (*adminapi.Client).Status)
	if err != nil && (!adminapi.IsDown(err) || len(sets) == 1) {
		return nil, err
	}
	var base keyset.Base
	switch {
	case err == nil && st.Cluster != nil:
		out.Cluster, out.Identity = st.Cluster.ID, st.Cluster.IdentityFingerprint
		if base, err = knownKeys(e, c, sets); err != nil {
			return nil, err
		}
	case len(sets) == 1:
		return nil, adminapi.Errorf(adminapi.CodeNotMember,
			"saltclusterctl setup, then saltclusterctl bootstrap, on the first master; or name two files to see the result",
			"there is no cluster yet that %s could be merged into", out.Sources[0].Name)
	default:
		out.Identity, base, sets = sets[0].Identity, keyset.SetBase(sets[0]), sets[1:]
	}
	out.names = []string{base.Name}
	for _, s := range sets {
		out.names = append(out.names, s.Name)
		if s.Identity != "" && out.Identity != "" && s.Identity != out.Identity && !c.Bool("replace-key") {
			return nil, console.Refusedf("masters that share minions need the same master.pem. If theirs differ, give the minions the cluster's key "+
				"(minion_master.pub), or let them verify it by a signature (verify_master_pubkey_sign); then --replace-key merges their keys",
				"%s has another master.pem (%s) than %s (%s): its minions would refuse the cluster", s.Name, s.Identity, base.Name, out.Identity)
		}
	}
	return keyset.Compare(base, sets), nil
}

// knownKeys asks the cluster about all ids of the sets.
func knownKeys(e *console.Env, c *cli.Context, sets []keyset.Set) (keyset.Base, error) {
	base := keyset.Base{Name: keyset.Cluster, Known: map[string]keyset.Known{}}
	var ids []string
	for _, s := range sets {
		for _, k := range s.Keys {
			if _, ok := base.Known[k.ID]; !ok {
				base.Known[k.ID] = keyset.Known{}
				ids = append(ids, k.ID)
			}
		}
	}
	for some := range slices.Chunk(ids, adminapi.MaxKeysOf) {
		got, err := console.AskAdmin(c, e,
			console.With((*adminapi.Client).KeysOf, adminapi.KeysOfRequest{IDs: some}))
		if err != nil {
			return base, err
		}
		if base.Rev == 0 || got.Rev < base.Rev {
			base.Rev = got.Rev
		}
		for _, k := range got.Keys {
			known := base.Known[k.ID]
			if k.State == adminapi.KeyDenied {
				known.Denied = k.Fingerprint
			} else {
				known.State, known.Fingerprint, known.Rev = k.State, k.Fingerprint, k.Rev
			}
			base.Known[k.ID] = known
		}
	}
	return base, nil
}

// mergeSets shows, asks, and does it.
func mergeSets(e *console.Env, c *cli.Context, out *merged, m *keyset.Merge) error {
	only := c.Bool("dry-run")
	if !only && out.Cluster != "" && !c.Bool("yes") && len(m.Open()) > 0 {
		s := e.NewScreen()
		mergeScreen(s, out.setFrom(m), c.Bool("all"))
		fmt.Fprint(e.Stderr, s.String())
		if err := decideOpen(e, m); err != nil {
			return err
		}
	}
	puts := out.setFrom(m).puts
	switch {
	case only, out.Cluster == "", out.Open > 0, puts == 0:
		if err := e.PrintValue(c, *out, func(s *console.Screen) { mergeEnd(s, *out, c.Bool("all"), only) }); err != nil {
			return err
		}
		return mergeResult(*out, only)
	case !c.Bool("yes"):
		s := e.NewScreen()
		mergeScreen(s, *out, c.Bool("all"))
		fmt.Fprint(e.Stderr, s.String())
		if err := e.AskConsent(c, fmt.Sprintf("merge %s into the cluster?", wording.Plural(puts, "key"))); err != nil {
			return err
		}
	}
	if err := putAll(e, c, out, m); err != nil {
		return err
	}
	if err := e.PrintValue(c, *out, func(s *console.Screen) { mergeEnd(s, *out, c.Bool("all"), false) }); err != nil {
		return err
	}
	return mergeResult(*out, false)
}

// setFrom takes what m says now.
func (out *merged) setFrom(m *keyset.Merge) merged {
	out.Counts, out.Open, out.puts, out.Rows = m.Counts(), len(m.Open()), len(m.Puts()), []keyset.Row{}
	for _, r := range m.Rows {
		if r.Kind != keyset.Same {
			out.Rows = append(out.Rows, r)
		}
	}
	if out.Failed == nil {
		out.Failed = []adminapi.DecidedKey{}
	}
	return *out
}

// decideOpen asks about each conflict.
func decideOpen(e *console.Env, m *keyset.Merge) error {
	in := bufio.NewReader(e.Stdin)
	e.Stdin = in // what it has read already belongs to the next question
	for _, r := range m.Open() {
		var names []string
		for _, c := range r.Claims {
			names = append(names, c.Source)
		}
		for done := false; !done; {
			fmt.Fprintf(e.Stderr, "%s: which key? [%s] ", console.Clean(r.ID), strings.Join(names, "/"))
			line, err := in.ReadString('\n')
			if err != nil && err != io.EOF {
				return fmt.Errorf("read the answer: %w", err)
			}
			answer := strings.TrimSpace(line)
			if err == io.EOF && answer == "" {
				return console.Usagef("--take "+r.ID+"="+names[0]+" decides one, --prefer "+names[0]+" all", "nothing was done")
			}
			done = m.Take(r.ID, answer) == nil
		}
	}
	return nil
}

// putAll tells the cluster, some keys at a time.
func putAll(e *console.Env, c *cli.Context, out *merged, m *keyset.Merge) error {
	var from []string
	for _, s := range out.Sources {
		from = append(from, s.Name)
	}
	for some := range splitPuts(m.Puts()) {
		done, err := console.AskAdmin(c, e,
			console.With((*adminapi.Client).PutKeys,
				adminapi.PutKeysRequest{From: strings.Join(from, " "), Seen: m.Base.Rev, Keys: some}))
		if err != nil {
			return fmt.Errorf("%s merged; run it again for the rest: %w", wording.Plural(out.Done, "key"),
				err)
		}
		for _, k := range done.Keys {
			if k.Error != "" {
				out.Failed = append(out.Failed, k)
				continue
			}
			out.Done++
		}
	}
	return nil
}

// splitPuts cuts puts into what one request takes.
func splitPuts(puts []adminapi.PutKey) func(yield func([]adminapi.PutKey) bool) {
	return func(yield func([]adminapi.PutKey) bool) {
		from, size := 0, 0
		for i, p := range puts {
			n := len(p.Pub) + len(p.Denied)
			if i > from && (i-from == adminapi.MaxPut || size+n > adminapi.MaxPutBytes) {
				if !yield(puts[from:i]) {
					return
				}
				from, size = i, 0
			}
			size += n
		}
		if from < len(puts) {
			yield(puts[from:])
		}
	}
}

func mergeResult(out merged, only bool) error {
	switch {
	case only && out.Open > 0:
		return console.SilentError(console.ExitProblems)
	case only:
		return nil
	case out.Cluster == "":
		return console.SilentError(console.ExitNoQuorum)
	case out.Open > 0, len(out.Failed) > 0:
		return console.SilentError(console.ExitRefused)
	}
	return nil
}
