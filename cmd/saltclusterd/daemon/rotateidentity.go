package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/consensus/state"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/saltcrypt"
)

// rotateIdentity changes the identity of the cluster in steps that an operator takes: see docs/security.md.
func (m *member) rotateIdentity(ctx context.Context, r adminapi.RotateRequest, p admin.Progress) (adminapi.Outcome, error) {
	if err := m.knows(state.LevelIdentity); err != nil {
		return adminapi.Outcome{}, err
	}
	if m.svc == nil {
		return adminapi.Outcome{}, m.d.notOnWitness("change it")
	}
	fresh, cancel := context.WithTimeout(ctx, decidedWithin)
	defer cancel()
	if err := m.cons.Barrier(fresh); err != nil {
		return adminapi.Outcome{}, m.noQuorum(err)
	}
	v := m.cons.View()
	c := v.IdentityChange()
	if due := dueIdentity(m.fingerprint, v.Identity().IdentityFP, c); due == identityLost {
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeRefused, "remove it, and let it join again", "this node has missed a change of the identity")
	}
	switch r.Step {
	case adminapi.IdentityReport:
		return m.identityReport(ctx, c)
	case adminapi.IdentityPrepare:
		return m.prepareIdentity(ctx, r, c, p)
	case adminapi.IdentitySwitch:
		return m.switchIdentity(ctx, r, c, p)
	case adminapi.IdentityAbort:
		if c.Stage != state.IdentityStaged {
			return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeRefused, "saltclusterctl rotate identity", "no identity is staged; after the switch there is no way back but another change")
		}
		return m.dropIdentity(ctx, r, c, p)
	case adminapi.IdentityFinish:
		if c.Stage != state.IdentitySwitched {
			return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeRefused, "saltclusterctl rotate identity", "the identity was not switched")
		}
		return m.dropIdentity(ctx, r, c, p)
	}
	return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeInvalid, "saltclusterctl rotate identity --help", "there is no step %.40q", r.Step)
}

// prepareIdentity makes another key pair, and has the cluster keep it beside the one in force.
func (m *member) prepareIdentity(ctx context.Context, r adminapi.RotateRequest, c state.IdentityChange, p admin.Progress) (adminapi.Outcome, error) {
	if c.Stage != state.NoIdentity {
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeRefused, "saltclusterctl rotate identity", "an identity is %s already", c.Stage)
	}
	if master := m.followedMaster(); master.Bool("master_sign_pubkey") && master.Bool("master_use_pubkey_signature") {
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeRefused, "set master_use_pubkey_signature: False, with master_sign.pem on every master, and repeat this",
			"the salt-master shows a signature that was made beforehand, for the key it has now")
	}
	out := adminapi.Outcome{Message: "a new identity would be made and kept beside the one in force"}
	if r.DryRun {
		return out, nil
	}
	p("identity", "making a key pair")
	key, err := saltcrypt.GenerateMasterKey(max(2048, m.key.Public().Bits()))
	if err != nil {
		return out, err
	}
	sealed, err := saltcrypt.SealFor(m.key.Public(), identityLabel, key.PEM())
	if err != nil {
		return out, err
	}
	former, err := saltcrypt.SealFor(key.Public(), identityLabel, m.key.PEM())
	if err != nil {
		return out, err
	}
	c = state.IdentityChange{Stage: state.IdentityStaged, FP: saltcrypt.Fingerprint(key.PublicText()), Public: key.PublicText()}
	_, err = m.decide(ctx, state.IdentityStage{
		Expect: m.fingerprint, FP: c.FP, Public: c.Public, Sealed: sealed, Former: former, Audit: m.audit("rotate"),
	})
	if err != nil {
		return out, err
	}
	return adminapi.Outcome{Message: "a new identity is staged, fingerprint " + c.FP, Next: stagedSteps(c)}, nil
}

// stagedSteps is what an operator does while an identity is staged.
func stagedSteps(c state.IdentityChange) []string {
	return []string{
		"tell the minions, as soon as you are about to switch: " + pinCommand(c.Public) +
			"  (where their pki_dir is another one, its path; and master_finger, where it is set)",
		"saltclusterctl rotate aes has each of them sign in within rotate_window; saltclusterctl rotate identity says who has pinned the new key",
		"saltclusterctl rotate identity --switch, or --abort",
	}
}

// pinCommand is what has minions pin a key.
func pinCommand(public string) string {
	lines, _ := json.Marshal(strings.Split(strings.TrimSpace(public), "\n"))
	return "salt '*' file.write /etc/salt/pki/minion/minion_master.pub args='" + string(lines) + "'"
}

// readiness is what the minions with an accepted key have pinned.
type readiness struct {
	ready   []string
	former  []string // they signed in, with the former key
	foreign []string // with neither
	unseen  []string // they have not signed in since the change was begun, or since the node that knew was started
	missing []string // nodes that could not be asked
}

func (s readiness) behind() int { return len(s.former) + len(s.foreign) + len(s.unseen) }

func sortMinions(accepted []string, pins map[string]pin, fp string) (s readiness) {
	for _, id := range accepted {
		switch p, ok := pins[id]; {
		case !ok:
			s.unseen = append(s.unseen, id)
		case p.FP == fp:
			s.ready = append(s.ready, id)
		case p.FP == "":
			s.foreign = append(s.foreign, id)
		default:
			s.former = append(s.former, id)
		}
	}
	return s
}

// lines names them, some of each kind.
func (s readiness) lines() (out []string) {
	for _, kind := range []struct {
		what string
		ids  []string
	}{
		{"still pinned to the former key", s.former}, {"pinned to a key that is neither", s.foreign},
		{"not seen to sign in since (away, or not asked to)", s.unseen}, {"nodes that could not be asked", s.missing},
	} {
		if len(kind.ids) > 0 {
			out = append(out, fmt.Sprintf("%s, %d: %s", kind.what, len(kind.ids), some(kind.ids)))
		}
	}
	return out
}

// count says how many minions have pinned the identity in question.
func (s readiness) count() string {
	return fmt.Sprintf("%s %s pinned it, %d %s not", plural(len(s.ready), "minion"), oneOf(len(s.ready), "has", "have"), s.behind(), oneOf(s.behind(), "has", "have"))
}

// shownIDs bounds how many ids are named in a sentence.
const shownIDs = 50

func some(ids []string) string {
	if len(ids) <= shownIDs {
		return strings.Join(ids, ", ")
	}
	return strings.Join(ids[:shownIDs], ", ") + ", …"
}

// readiness asks all nodes.
func (m *member) readiness(ctx context.Context, c state.IdentityChange) readiness {
	ctx, cancel := context.WithTimeout(ctx, peerrpc.Timeout)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	var lists []pinList
	var missing []string
	for _, mem := range m.cons.View().Members() {
		if mem.Witness {
			continue
		}
		wg.Go(func() {
			l, err := m.pinsOf(ctx, mem.ID)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				missing = append(missing, string(mem.ID))
			}
			lists = append(lists, l)
		})
	}
	wg.Wait()
	var accepted []string
	m.cons.View().Keys(func(k state.Key) bool {
		if k.State == state.KeyAccepted {
			accepted = append(accepted, k.ID)
		}
		return true
	})
	slices.Sort(accepted)
	slices.Sort(missing)
	s := sortMinions(accepted, latestPins(c.FP, lists), c.FP)
	s.missing = missing
	return s
}

// identityNodes says of each node whether it has the new identity.
func (m *member) identityNodes(ctx context.Context, c state.IdentityChange) (have int, behind []string) {
	for _, mem := range m.cons.View().Members() {
		s, err := m.statsSoon(ctx, mem.ID)
		switch {
		case err != nil:
			behind = append(behind, fmt.Sprintf("%s does not answer: it takes the new identity when it comes back", mem.ID))
		case s.Identity != c.FP:
			behind = append(behind, fmt.Sprintf("%s has not taken the new identity yet: the nodes take turns", mem.ID))
		case !mem.Witness && !s.IdentityShown:
			behind = append(behind, fmt.Sprintf("the salt-master of %s has not shown the new identity: without master_restart_command restart it", mem.ID))
		default:
			have++
		}
	}
	return have, behind
}

func (m *member) identityReport(ctx context.Context, c state.IdentityChange) (adminapi.Outcome, error) {
	var out adminapi.Outcome
	if c.Stage == state.NoIdentity {
		out.Message = "no change of the identity is under way; the one in force has the fingerprint " + m.cons.View().Identity().IdentityFP
		return out, nil
	}
	s := m.readiness(ctx, c)
	out.Next = s.lines()
	if c.Stage == state.IdentityStaged {
		out.Message = fmt.Sprintf("staged: %s; %s", c.FP, s.count())
		out.Next = append(out.Next, stagedSteps(c)...)
		return out, nil
	}
	have, behind := m.identityNodes(ctx, c)
	out.Message = fmt.Sprintf("switched: %s; %s %s it, %d %s not; %s",
		c.FP, plural(have, "node"), oneOf(have, "has", "have"), len(behind), oneOf(len(behind), "has", "have"), s.count())
	out.Next = append(out.Next, behind...)
	if len(behind) > 0 || s.behind() > 0 {
		out.Next = append(out.Next, "minions that were not told: "+pinCommand(c.Public), "saltclusterctl rotate aes has them sign in; then saltclusterctl rotate identity")
	}
	out.Next = append(out.Next, "saltclusterctl rotate identity --finish")
	return out, nil
}

// switchIdentity puts the staged identity in force. The nodes take it by themselves.
func (m *member) switchIdentity(ctx context.Context, r adminapi.RotateRequest, c state.IdentityChange, p admin.Progress) (adminapi.Outcome, error) {
	if c.Stage != state.IdentityStaged {
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeRefused, "saltclusterctl rotate identity --prepare", "no identity is staged")
	}
	s := m.readiness(ctx, c)
	if s.behind() > 0 && !r.Force {
		return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeRefused, "tell them, or --force: until --finish they are answered under the former identity",
			"%d of %s %s not shown to have pinned the new key: %s", s.behind(), plural(s.behind()+len(s.ready), "minion"),
			oneOf(s.behind(), "is", "are"), strings.Join(s.lines(), "; "))
	}
	out := adminapi.Outcome{Message: "the new identity is in force; the nodes take it one after the other", Next: append(s.lines(),
		m.downLines("%s is down: it takes the new identity when it comes back")...)}
	out.Next = append(out.Next, "saltclusterctl rotate identity says how far they are; where master_restart_command is not set: restart the salt-master when it says so",
		"saltclusterctl rotate identity --finish")
	if r.DryRun {
		return out, nil
	}
	p("identity", "asking the cluster to put the new identity in force")
	_, err := m.decide(ctx, state.IdentitySwitch{FP: c.FP, Audit: m.audit("rotate")})
	return out, err
}

// dropIdentity forgets the identity that is not in force.
func (m *member) dropIdentity(ctx context.Context, r adminapi.RotateRequest, c state.IdentityChange, p admin.Progress) (adminapi.Outcome, error) {
	s := m.readiness(ctx, c)
	out := adminapi.Outcome{Message: "the former identity is forgotten", Next: s.lines()}
	if c.Stage == state.IdentityStaged {
		out = adminapi.Outcome{Message: "the staged identity is forgotten"}
		if n := len(s.ready); n > 0 && !r.Force {
			return out, adminapi.Errorf(adminapi.CodeRefused, "let them pin the former key again (salt '*' file.write), then saltclusterctl rotate aes; or --switch",
				"%s %s pinned the new key already and would refuse the one in force: %s", plural(n, "minion"), oneOf(n, "has", "have"), some(s.ready))
		}
	} else {
		_, behind := m.identityNodes(ctx, c)
		if len(behind) > 0 && !r.Force {
			return out, adminapi.Errorf(adminapi.CodeRefused, "wait for them, or --force: then they have to be removed and to join again", "%s", strings.Join(behind, "; "))
		}
		if s.behind() > 0 && !r.Force {
			return out, adminapi.Errorf(adminapi.CodeRefused, "tell them, and saltclusterctl rotate aes; or --force: then they refuse this cluster until somebody replaces their minion_master.pub",
				"%s %s not shown to have pinned the new key: %s", plural(s.behind(), "minion"), oneOf(s.behind(), "is", "are"), strings.Join(s.lines(), "; "))
		}
	}
	if r.DryRun {
		return out, nil
	}
	p("identity", "asking the cluster to forget it")
	if _, err := m.decide(ctx, state.IdentityDrop{FP: c.FP, Stage: c.Stage, Audit: m.audit("rotate")}); err != nil {
		return out, err
	}
	if c.Stage == state.IdentitySwitched { // not with the switch: a process does not take over while minions are moved to another AES key
		if _, err := m.secrets.ReplaceAES(ctx); err != nil {
			out.Next = append(out.Next, "saltclusterctl rotate aes: the AES key was not replaced")
		}
	}
	return out, nil
}
