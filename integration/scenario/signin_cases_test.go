//go:build integration

package scenario

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/saltcrypt"
)

// Who may sign in is the stock master's policy, also through us: a minion hears what it hears from a bare master, the
// same key files appear, now on every node, and salt/auth fires as often, once for the whole cluster.
func TestSignInPolicy(t *testing.T) {
	t.Parallel()
	c, bare, nodes := policyPlaces(t)
	all := slices.Concat(bare, nodes)
	whole := func() { labtest.Must(t, c.Whole(t.Context(), 2*time.Minute)) }

	t.Run("operators and files decide", func(t *testing.T) { runPolicy(t, fileCases, bare, nodes) })
	reconfigure(t, all, lab.Settings{"auto_accept": true, "max_minions": 1})
	whole()
	t.Run("auto_accept and max_minions", func(t *testing.T) { runPolicy(t, acceptCases, bare, nodes) })
	reconfigure(t, all, lab.Settings{"open_mode": true})
	whole()
	t.Run("open_mode", func(t *testing.T) { runPolicy(t, openCases, bare, nodes) })
}

var fileCases = []policyCase{
	{
		name:  "pending",
		do:    func(x *trial) { x.signIn("new", "A"); x.signIn("new", "A") },
		heard: []string{"pending", "pending"}, files: map[string]string{"new": "minions_pre:A"},
	},
	{
		name:  "pending, then another key",
		do:    func(x *trial) { x.signIn("twice", "A"); x.signIn("twice", "B"); x.signIn("twice", "A") },
		heard: []string{"pending", "rejected", "pending"},
		files: map[string]string{"twice": "minions_pre:A minions_denied:B"},
	},
	{
		name: "rejected by an operator",
		do: func(x *trial) {
			x.signIn("unwanted", "A")
			x.settle(map[string]string{"unwanted": "minions_pre:A"})
			x.saltKey("-r", "unwanted")
			x.settle(map[string]string{"unwanted": "minions_rejected:A"})
			x.signIn("unwanted", "A")
		},
		heard: []string{"pending", "rejected"}, files: map[string]string{"unwanted": "minions_rejected:A"},
	},
	{
		name: "autosign_file",
		do: func(x *trial) {
			x.write("autosign.conf", "# who may\nsigned-*\n")
			x.signIn("signed-1", "A")
			x.everywhere("signed-1", "A")
		},
		heard: []string{"accepted", "accepted", "accepted"}, files: map[string]string{"signed-1": "minions:A"},
	},
	{
		name: "denied: an accepted minion with another key",
		do: func(x *trial) {
			x.signIn("signed-2", "A")
			x.signIn("signed-2", "B")
			x.everywhere("signed-2", "A")
		},
		heard: []string{"accepted", "rejected", "accepted", "accepted"},
		files: map[string]string{"signed-2": "minions:A minions_denied:B"},
	},
	{
		name: "autosign stub",
		do: func(x *trial) {
			x.stub("stub")
			x.signIn("stub", "A")
			if _, err := os.Stat(x.stubPath("stub")); err == nil {
				x.t.Errorf("%s: the stub of %s has not been used up", x.name, x.minion("stub").id)
			}
			x.everywhere("stub", "A")
			x.signIn("nostub", "A")
		},
		heard: []string{"accepted", "accepted", "accepted", "pending"},
		files: map[string]string{"stub": "minions:A", "nostub": "minions_pre:A"},
	},
	{
		name: "pending, then autosign stub",
		do: func(x *trial) {
			x.signIn("later", "A")
			x.settle(map[string]string{"later": "minions_pre:A"})
			x.stub("later")
			x.signIn("later", "A")
			x.everywhere("later", "A")
		},
		heard: []string{"pending", "accepted", "accepted", "accepted"}, files: map[string]string{"later": "minions:A"},
	},
	{
		name: "autosign_grains",
		do: func(x *trial) {
			x.write("autosign_grains/rack", "r1\nr2\n")
			x.minion("good").more = map[string]any{"rack": "r2"}
			x.minion("bad").more = map[string]any{"rack": "r3", "other": nil}
			x.signIn("good", "A")
			x.everywhere("good", "A")
			x.signIn("bad", "A")
		},
		heard: []string{"accepted", "accepted", "accepted", "pending"},
		files: map[string]string{"good": "minions:A", "bad": "minions_pre:A"},
	},
	{
		name: "autoreject_file",
		do: func(x *trial) {
			x.write("autoreject.conf", "evil.*\n")
			x.signIn("evil", "A")
			x.signIn("evil", "A")
		},
		heard: []string{"rejected", "rejected"}, files: map[string]string{"evil": "minions_rejected:A"},
	},
	{
		name: "pending, then autoreject_file",
		do: func(x *trial) {
			x.signIn("turncoat", "A")
			x.settle(map[string]string{"turncoat": "minions_pre:A"})
			x.write("autoreject.conf", "evil.*\nturncoat.*\n")
			x.signIn("turncoat", "A")
		},
		heard: []string{"pending", "rejected"}, files: map[string]string{"turncoat": "minions_rejected:A"},
	},
	{
		name: "SHA224",
		do: func(x *trial) {
			x.minion("signed-3").enc, x.minion("signed-3").sig = saltcrypt.OAEPSHA224, saltcrypt.PKCS1v15SHA224
			x.minion("modern").enc, x.minion("modern").sig = saltcrypt.OAEPSHA224, saltcrypt.PKCS1v15SHA224
			x.signIn("signed-3", "A")
			x.everywhere("signed-3", "A")
			x.signIn("modern", "A")
		},
		heard: []string{"accepted", "accepted", "accepted", "pending"},
		files: map[string]string{"signed-3": "minions:A", "modern": "minions_pre:A"},
	},
	{
		// We refuse before the master sees it: a worker that trips over it may be lost. Stock masters fire "accept" before
		// they find out that they cannot sign.
		name: "algorithms that Salt does not have", noEvents: true,
		do: func(x *trial) {
			x.signIn("signed-4", "A")
			x.minion("signed-4").enc = "OAEP-SHA512"
			x.signIn("signed-4", "A")
			x.minion("signed-4").enc, x.minion("signed-4").sig = saltcrypt.OAEPSHA1, "PKCS1v15-SHA512"
			x.signIn("signed-4", "A")
		},
		heard: []string{"accepted", "unsigned bad enc algo", "unsigned bad sig algo"},
		files: map[string]string{"signed-4": "minions:A"},
	},
}

var acceptCases = []policyCase{
	{
		name: "auto_accept",
		do: func(x *trial) {
			x.signIn("auto", "A")
			x.everywhere("auto", "A")
			x.signIn("auto", "B")
		},
		heard: []string{"accepted", "accepted", "accepted", "rejected"},
		files: map[string]string{"auto": "minions:A minions_denied:B"},
	},
	{
		name: "autoreject_file before auto_accept",
		do:   func(x *trial) { x.write("autoreject.conf", "evil-auto.*\n"); x.signIn("evil-auto", "A") },

		heard: []string{"rejected"}, files: map[string]string{"evil-auto": "minions_rejected:A"},
	},
	{
		name: "max_minions",
		do: func(x *trial) {
			ctx := x.t.Context()
			for _, name := range []string{"seated-1", "seated-2"} {
				x.signIn(name, "A")
				// The master counts who has cached grains with an address that is connected to 4505.
				_, _, err := x.minion(name).request(ctx, x.addr, "_pillar", map[string]any{
					"grains":    map[string]any{"id": x.minion(name).id, "ipv4": []string{x.from.Addr}},
					"saltenv":   "base",
					"pillarenv": nil, "pillar_override": map[string]any{}, "extra_minion_data": map[string]any{}, "ver": "2",
				})
				labtest.Must(x.t, err)
			}
			sub, err := x.minion("seated-1").connect(ctx, x.addr, "4505", "SUB")
			labtest.Must(x.t, err)
			defer sub.Close()
			labtest.Must(x.t, sub.Subscribe(nil))
			x.signIn("late", "A")
			x.signIn("seated-1", "A")
		},
		heard: []string{"accepted", "accepted", "full", "accepted"},
		files: map[string]string{"seated-1": "minions:A", "seated-2": "minions:A", "late": ""},
	},
}

var openCases = []policyCase{
	{
		name: "a changed key",
		do: func(x *trial) {
			x.signIn("open", "A")
			x.everywhere("open", "A")
			x.settle(map[string]string{"open": "minions:A"})
			x.signIn("open", "B")
			x.everywhere("open", "B")
			x.signIn("open", "A")
		},
		heard: []string{"accepted", "accepted", "accepted", "accepted", "accepted", "accepted", "accepted"},
		files: map[string]string{"open": "minions:A"},
	},
}

var errNotYet = errors.New("not yet")

// eventually is lab.Eventually for a condition without a story.
func eventually(t *testing.T, within time.Duration, what string, cond func() bool) {
	t.Helper()
	labtest.Must(t, lab.Eventually(t.Context(), within, what, func(context.Context) error {
		if !cond() {
			return errNotYet
		}
		return nil
	}))
}
