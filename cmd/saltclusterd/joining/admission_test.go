package joining

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/consensus"
	"saltclusterd/consensus/state"
	"saltclusterd/gossip/jointoken"
	"saltclusterd/gossip/node"
	"saltclusterd/gossip/peer"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/saltcrypt"
)

const testSecret = "a-test-secret-0123456789-abcdef"

var generateKey = sync.OnceValue(func() *saltcrypt.MasterKey {
	key, err := saltcrypt.GenerateMasterKey(2048)
	if err != nil {
		panic(err)
	}
	return key
})

// fakeLog is consensus of one node.
type fakeLog struct {
	*state.State
	voters []node.ID
}

func (l *fakeLog) Status() consensus.Status { return consensus.Status{Voters: l.voters} }

func (l *fakeLog) Propose(_ context.Context, cmds ...state.Command) ([]state.Result, error) {
	return l.ApplyCommands(cmds...), nil
}

func fingerprint(c string) string { return strings.Repeat(c, 64) }

// newLog returns the log of a cluster of the master m1, which votes, and the witness w1, with a key of the minion web1.
func newLog(t *testing.T) *fakeLog {
	t.Helper()
	l := &fakeLog{State: state.New(), voters: []node.ID{"m1"}}
	for _, r := range l.ApplyCommands(
		state.Init{
			Identity:    state.Identity{ClusterID: "lab", UUID: "11111111-2222", IdentityFP: "ab:cd"},
			Founder:     state.Member{ID: "m1", Addr: "192.0.2.1:4520", Fingerprint: fingerprint("a"), Weight: 100},
			EpochKey:    state.SecretText(strings.Repeat("QUFB", 18) + "QUE="),
			SessionSeed: state.SecretText(strings.Repeat("s", 32)),
			GossipKey:   state.SecretText(strings.Repeat("g", 32)),
		},
		state.MemberAdd{ID: "w1", Addr: "192.0.2.3:4520", Fingerprint: fingerprint("c"), Weight: 100, Witness: true},
		state.KeySet{ID: "web1", State: state.KeyAccepted, Pub: "PEM"},
	) {
		require.NoError(t, r.Err())
	}
	return l
}

func newTestAdmission(l *fakeLog) *Admission {
	return NewAdmission(AdmissionConfig{
		Self: "m1", ClusterID: "lab", Secret: config.NewSecret(testSecret), Public: generateKey().PublicText(),
		Log:   func() Log { return l },
		Alive: func(id node.ID) bool { return id == "m1" }, Supported: func(uint16) error { return nil },
		Decide: func(_ context.Context, c state.Command) (state.Result, error) {
			r := l.ApplyCommands(c)[0]
			return r, r.Err()
		},
		Audit:      func(cause string) state.Audit { return state.Audit{By: "m1", At: time.Now().UnixMilli(), Cause: cause} },
		AwaitRoots: func(context.Context) error { return nil }, Logger: slog.New(slog.DiscardHandler),
		SigningKey: func() ([]byte, error) { return []byte("the signing key"), nil },
	})
}

func ignoreProgress(string, string, ...int) {}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return b
}

func TestHandler_Admit(t *testing.T) {
	known, unknown := hashKey("web1", "PEM"), hashKey("web2", "PEM")
	notYet := errors.New("not yet")
	for _, tc := range []struct {
		name    string
		id      node.ID
		fp      string
		payload []byte
		roots   error
		want    string // in the refusal
		private bool
		signing string
	}{
		{name: "master", id: "m2", fp: "b", payload: encode(t, requestPayload{Accepted: known[:]}), private: true},
		{name: "master that signs", id: "m2", fp: "b", payload: encode(t, requestPayload{Signs: true}), private: true,
			signing: "the signing key"},
		{name: "witness that signs", id: "w2", fp: "b", payload: encode(t, requestPayload{Witness: true, Signs: true})},
		{name: "version without witnesses", id: "m2", fp: "b", private: true},
		{name: "witness", id: "w2", fp: "b", payload: encode(t, requestPayload{Witness: true}), roots: notYet},
		{name: "repeated join", id: "w1", fp: "c", payload: encode(t, requestPayload{Witness: true})},
		{name: "another certificate", id: "w1", fp: "b", want: "with another certificate"},
		{name: "voter", id: "m1", fp: "a", want: "votes in this cluster"},
		{name: "malformed payload", id: "m2", fp: "b", payload: []byte("{"), want: "malformed join request"},
		{name: "former witness", id: "w1", fp: "c", want: "its option cluster_witness has changed"},
		{name: "unknown keys", id: "m2", fp: "b", want: "1 of the 2 minion keys",
			payload: encode(t, requestPayload{Accepted: append(known[:], unknown[:]...)})},
		{name: "roots", id: "m2", fp: "b", roots: notYet, want: "not yet"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLog(t)
			before := len(l.View().Members())
			a := newTestAdmission(l)
			a.cfg.AwaitRoots = func(context.Context) error { return tc.roots }
			h, err := a.Handler(generateKey().PEM(), []byte(generateKey().PublicText()))
			require.NoError(t, err)
			reply, err := h.Admit(t.Context(), peer.JoinRequest{
				ID: tc.id, Advertise: netip.MustParseAddrPort("192.0.2.9:4520"),
				Fingerprint: node.Fingerprint(fingerprint(tc.fp)), Payload: tc.payload,
			})
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%v, want %q", err, tc.want)
				}
				if now := len(l.View().Members()); now != before {
					t.Errorf("%d members, %d before", now, before)
				}
				return
			}
			require.NoError(t, err)
			p, err := parseReplyPayload(reply)
			if err != nil || p.Version != replyVersion || p.UUID != "11111111-2222" || p.Rev != l.View().Rev() ||
				len(p.GossipKeys) != 1 {
				t.Errorf("%+v, %v", p, err)
			}
			if string(p.Signing) != tc.signing {
				t.Errorf("signing key %q, want %q", p.Signing, tc.signing)
			}
			if (p.Private != nil) != tc.private || string(p.Public) != generateKey().PublicText() {
				t.Errorf("private key of %d bytes, public key %s", len(p.Private), p.Public)
			}
			if !slices.ContainsFunc(p.Members, func(e node.Entry) bool { return e.ID == tc.id }) {
				t.Errorf("members are %v", p.Members)
			}
		})
	}
}

func TestAdmission_Secrets(t *testing.T) {
	l := newLog(t)
	a := newTestAdmission(l)
	h, err := a.Handler(generateKey().PEM(), []byte(generateKey().PublicText()))
	require.NoError(t, err)
	check := func(what string, problems int, want ...uint64) {
		t.Helper()
		var got []uint64
		for _, s := range h.JoinSecrets() {
			got = append(got, s.N)
		}
		if !slices.Equal(got, want) || len(a.SecretProblems()) != problems {
			t.Errorf("%s: secrets %v, problems %v", what, got, a.SecretProblems())
		}
	}
	rotate := func(code adminapi.Code, r adminapi.RotateRequest) {
		t.Helper()
		if out, err := a.RotateSecret(t.Context(), r, ignoreProgress); adminapi.CodeOf(err) != code {
			t.Errorf("%+v: %+v, %v", r, out, err)
		}
	}
	const (
		second = adminapi.Secret("a-second-secret-0123456789-abcdef")
		third  = adminapi.Secret("a-third-secret-0123456789-abcdef")
	)
	check("configured", 0, 0)
	rotate(adminapi.CodeRefused, adminapi.RotateRequest{Finish: true})
	rotate(adminapi.CodeInvalid, adminapi.RotateRequest{Secret: "short"})
	rotate("", adminapi.RotateRequest{Secret: second, DryRun: true})
	check("dry run", 0, 0)
	rotate("", adminapi.RotateRequest{Secret: second})
	check("two", 2, 1, 0)
	rotate(adminapi.CodeRefused, adminapi.RotateRequest{Secret: third})
	rotate("", adminapi.RotateRequest{Finish: true, DryRun: true})
	check("dry run of the end", 2, 1, 0)
	rotate("", adminapi.RotateRequest{Finish: true})
	check("finished", 1, 1)
	rotate("", adminapi.RotateRequest{Secret: testSecret, Now: true})
	check("now", 0, 2)
	if !a.TakesSecret() {
		t.Error("nodes can join with a secret that the cluster has agreed on")
	}
	a.cfg.Supported = func(uint16) error { return adminapi.Errorf(adminapi.CodeUnavailable, "", "older") }
	rotate(adminapi.CodeUnavailable, adminapi.RotateRequest{Finish: true})
}

func TestAdmission_TakesSecret(t *testing.T) {
	for _, takes := range []bool{true, false} {
		a := newTestAdmission(newLog(t))
		if !takes {
			a.cfg.Secret = config.Secret{}
		}
		if a.TakesSecret() != takes {
			t.Errorf("a cluster secret is configured: %v", takes)
		}
	}
}

func TestTokenVerbs(t *testing.T) {
	none := adminapi.Errorf(adminapi.CodeNotMember, "", "no cluster")
	out := TokenVerbs{Of: func() (*Admission, error) { return nil, none }}
	if _, err := out.CreateToken(t.Context(), adminapi.TokenRequest{}); !errors.Is(err, none) {
		t.Error(err)
	}
	if _, err := out.Tokens(t.Context()); !errors.Is(err, none) {
		t.Error(err)
	}
	if _, err := out.RevokeToken(t.Context(), ""); !errors.Is(err, none) {
		t.Error(err)
	}

	l := newLog(t)
	verbs := TokenVerbs{Of: func() (*Admission, error) { return newTestAdmission(l), nil }}
	var keeper admin.TokenKeeper = verbs
	tok := jointoken.New()
	made, err := keeper.CreateToken(t.Context(), adminapi.TokenRequest{
		ID: tok.ID(), Public: tok.Public(), Valid: time.Hour, Node: "m2", Note: "rack 3",
	})
	if err != nil || made.ClusterID != "lab" || !slices.Equal(made.Addresses, []string{"192.0.2.1:4520"}) ||
		made.Token.State != adminapi.TokenOpen {
		t.Fatalf("%+v, %v", made, err)
	}
	list, err := keeper.Tokens(t.Context())
	if err != nil || len(list.Tokens) != 1 || list.Tokens[0] != made.Token {
		t.Errorf("%+v, want %+v, %v", list, made.Token, err)
	}
	if _, err := keeper.RevokeToken(t.Context(), "another"); adminapi.CodeOf(err) != adminapi.CodeNotFound {
		t.Error(err)
	}
	if row, err := keeper.RevokeToken(t.Context(), tok.ID()); err != nil || row.ID != tok.ID() {
		t.Errorf("%+v, %v", row, err)
	}
	if list, err := keeper.Tokens(t.Context()); err != nil || len(list.Tokens) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestTokenRow_State(t *testing.T) {
	now := time.UnixMilli(5000)
	used := state.JoinToken{Expires: 4000}
	used.Used.By = "m2"
	for want, token := range map[adminapi.TokenState]state.JoinToken{
		adminapi.TokenOpen: {Expires: 5000}, adminapi.TokenExpired: {Expires: 4999}, adminapi.TokenUsed: used,
	} {
		if row := tokenRow(token, now); row.State != want || (row.Used != nil) != (want == adminapi.TokenUsed) {
			t.Errorf("%+v, want %s", row, want)
		}
	}
}
