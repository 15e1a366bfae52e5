package identity

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"saltclusterd/cmd/saltclusterd/membership"
	"saltclusterd/cmd/saltclusterd/wording"
	"saltclusterd/consensus/state"
	"saltclusterd/sidecar/admin"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/saltcrypt"
)

// refuse returns the outcome of a step that is not taken, with what to type.
func refuse(hint, format string, args ...any) (adminapi.Outcome, error) {
	return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeRefused, hint, format, args...)
}

// Rotate takes one step of a change for an operator. The steps are described in docs/how-to/rotate-secrets.md.
func (c *Change) Rotate(ctx context.Context, r adminapi.RotateRequest, p admin.Progress) (adminapi.Outcome, error) {
	if err := c.cfg.Knows(state.LevelIdentity); err != nil {
		return adminapi.Outcome{}, err
	}
	if c.master == nil {
		return adminapi.Outcome{}, membership.WitnessCannot("change it")
	}
	fresh, cancel := context.WithTimeout(ctx, decidedWithin)
	defer cancel()
	if err := c.cfg.Log.Barrier(fresh); err != nil {
		return adminapi.Outcome{}, c.cfg.NoQuorum(err)
	}
	v := c.cfg.Log.View()
	agreed := v.IdentityChange()
	if c.dutyOf(v) == dutyMissed {
		return refuse("on another node: saltclusterctl remove NODE; then here: saltclusterctl join PEER",
			"this node has missed a change of the identity")
	}
	switch r.Step {
	case adminapi.IdentityReport:
		return c.report(ctx, agreed)
	case adminapi.IdentityPrepare:
		return c.prepare(ctx, r, agreed, p)
	case adminapi.IdentitySwitch:
		return c.switchOver(ctx, r, agreed, p)
	case adminapi.IdentityAbort:
		if agreed.Stage != state.IdentityStaged {
			return refuse("saltclusterctl rotate identity",
				"no identity is staged; after the switch, only another change can undo it")
		}
		return c.drop(ctx, r, agreed, p)
	case adminapi.IdentityFinish:
		if agreed.Stage != state.IdentitySwitched {
			return refuse("saltclusterctl rotate identity", "the identity was not switched")
		}
		return c.drop(ctx, r, agreed, p)
	}
	return adminapi.Outcome{}, adminapi.Errorf(adminapi.CodeInvalid, "saltclusterctl rotate identity --help",
		"there is no step %.40q", r.Step)
}

// prepare makes another key pair and has the cluster keep it beside the one in force.
func (c *Change) prepare(
	ctx context.Context, r adminapi.RotateRequest, agreed state.IdentityChange, p admin.Progress,
) (adminapi.Outcome, error) {
	if agreed.Stage != state.NoIdentity {
		return refuse("saltclusterctl rotate identity", "an identity is %s already", agreed.Stage)
	}
	options := c.master.Options()
	if options.Bool("master_sign_pubkey") && options.Bool("master_use_pubkey_signature") {
		return refuse("set master_use_pubkey_signature: False, with master_sign.pem on every master, and repeat this",
			"the salt-master presents a signature that was made in advance for its current key")
	}
	if r.DryRun {
		return adminapi.Outcome{Message: "a new identity would be created and kept beside the current one"}, nil
	}
	p("identity", "making a key pair")
	key, err := saltcrypt.GenerateMasterKey(max(2048, c.cfg.Key.Public().Bits()))
	if err != nil {
		return adminapi.Outcome{}, err
	}
	sealed, err := saltcrypt.SealFor(c.cfg.Key.Public(), sealLabel, key.PEM())
	if err != nil {
		return adminapi.Outcome{}, err
	}
	former, err := saltcrypt.SealFor(key.Public(), sealLabel, c.cfg.Key.PEM())
	if err != nil {
		return adminapi.Outcome{}, err
	}
	fp, public := saltcrypt.Fingerprint(key.PublicText()), key.PublicText()
	_, err = c.cfg.Decide(ctx, state.IdentityStage{
		Expect: c.cfg.Fingerprint, FP: fp, Public: public, Sealed: sealed, Former: former,
		Audit: state.Audit{Cause: "rotate"},
	})
	if err != nil {
		return adminapi.Outcome{}, err
	}
	return adminapi.Outcome{Message: "a new identity is staged, fingerprint " + fp, Next: describeStaged(public)}, nil
}

// describeStaged lists what an operator does while an identity is staged.
func describeStaged(public string) []string {
	return []string{
		"before the switch, give minions the new key:  " + pinCommand(public) +
			"  (adapt the path if their pki_dir differs; also change master_finger where it is set)",
		"saltclusterctl rotate aes has each of them sign in within rotate_window; " +
			"saltclusterctl rotate identity says which minions have stored the new key",
		"saltclusterctl rotate identity switch, or saltclusterctl rotate identity abort",
	}
}

// pinCommand returns the command that makes minions pin a key.
func pinCommand(public string) string {
	lines, _ := json.Marshal(strings.Split(strings.TrimSpace(public), "\n"))
	return "salt '*' file.write /etc/salt/pki/minion/minion_master.pub args='" + string(lines) + "'"
}

// compareNodes asks all nodes. It counts those that have the new identity and describes the others.
func (c *Change) compareNodes(ctx context.Context, agreed state.IdentityChange) (have int, behind []string) {
	for _, mem := range c.cfg.Log.View().Members() {
		s, err := c.cfg.Status(ctx, mem.ID)
		text := ""
		switch {
		case err != nil:
			text = "%s does not answer: it switches to the new identity when it is back"
		case s.Fingerprint != agreed.FP:
			text = "%s has not taken the new identity yet: the nodes take it one after the other"
		case !mem.Witness && !s.Shown:
			text = "the salt-master of %s does not present the new identity yet: restart it, unless master_restart_command is set"
		default:
			have++
			continue
		}
		behind = append(behind, fmt.Sprintf(text, mem.ID))
	}
	return have, behind
}

// report describes how far a change is.
func (c *Change) report(ctx context.Context, agreed state.IdentityChange) (adminapi.Outcome, error) {
	if agreed.Stage == state.NoIdentity {
		return adminapi.Outcome{Message: "no change of the identity is under way; the current one has the fingerprint " +
			c.cfg.Log.View().Identity().IdentityFP}, nil
	}
	s := c.askReadiness(ctx, agreed)
	out := adminapi.Outcome{Next: s.describe()}
	if agreed.Stage == state.IdentityStaged {
		out.Message = fmt.Sprintf("staged: %s; %s", agreed.FP, s.summarize())
		out.Next = append(out.Next, describeStaged(agreed.Public)...)
		return out, nil
	}
	have, behind := c.compareNodes(ctx, agreed)
	out.Message = fmt.Sprintf("switched: %s; %s %s it, %d %s not; %s", agreed.FP, wording.Plural(have, "node"),
		wording.Choose(have, "has", "have"), len(behind), wording.Choose(len(behind), "has", "have"), s.summarize())
	out.Next = append(out.Next, behind...)
	if len(behind) > 0 || s.countBehind() > 0 {
		out.Next = append(out.Next, "minions without the new key:  "+pinCommand(agreed.Public),
			"saltclusterctl rotate aes has them sign in; then saltclusterctl rotate identity")
	}
	out.Next = append(out.Next, "saltclusterctl rotate identity finish")
	return out, nil
}

// switchOver puts the staged identity in force. Each node takes it when it is its turn.
func (c *Change) switchOver(
	ctx context.Context, r adminapi.RotateRequest, agreed state.IdentityChange, p admin.Progress,
) (adminapi.Outcome, error) {
	if agreed.Stage != state.IdentityStaged {
		return refuse("saltclusterctl rotate identity prepare", "no identity is staged")
	}
	s := c.askReadiness(ctx, agreed)
	if behind := s.countBehind(); behind > 0 && !r.Force {
		return refuse("give them the new key, or add --force: until rotate identity finish they are answered under the former identity",
			"%d of %s %s not shown to have pinned the new key: %s", behind, wording.Plural(behind+len(s.ready), "minion"),
			wording.Choose(behind, "is", "are"), strings.Join(s.describe(), "; "))
	}
	out := adminapi.Outcome{
		Message: "the new identity is in force; the nodes switch to it one after the other",
		Next:    append(s.describe(), c.describeDown("%s is down: it switches to the new identity when it is back")...),
	}
	out.Next = append(out.Next, "saltclusterctl rotate identity shows their progress; "+
		"without master_restart_command, restart each salt-master when saltclusterctl rotate identity says so",
		"saltclusterctl rotate identity finish")
	if r.DryRun {
		return out, nil
	}
	p("identity", "asking the cluster to switch to the new identity")
	_, err := c.cfg.Decide(ctx, state.IdentitySwitch{FP: agreed.FP, Audit: state.Audit{Cause: "rotate"}})
	return out, err
}

// drop has the cluster forget the identity that is not in force.
func (c *Change) drop(
	ctx context.Context, r adminapi.RotateRequest, agreed state.IdentityChange, p admin.Progress,
) (adminapi.Outcome, error) {
	s := c.askReadiness(ctx, agreed)
	out := adminapi.Outcome{Message: "the former identity is deleted", Next: s.describe()}
	if agreed.Stage == state.IdentityStaged {
		out = adminapi.Outcome{Message: "the staged identity is deleted"}
		if n := len(s.ready); n > 0 && !r.Force {
			return refuse("let them pin the former key again (salt '*' file.write), then saltclusterctl rotate aes; "+
				"or saltclusterctl rotate identity switch",
				"%s %s pinned the new key already and would refuse the one in force: %s",
				wording.Plural(n, "minion"), wording.Choose(n, "has", "have"), joinSome(s.ready))
		}
	} else {
		_, nodes := c.compareNodes(ctx, agreed)
		if len(nodes) > 0 && !r.Force {
			return refuse("wait for them, or add --force: these nodes then have to be removed and join again",
				"%s", strings.Join(nodes, "; "))
		}
		if behind := s.countBehind(); behind > 0 && !r.Force {
			return refuse("give them the new key, then saltclusterctl rotate aes; or add --force: then they refuse this cluster until their minion_master.pub is replaced",
				"%s %s not shown to have pinned the new key: %s",
				wording.Plural(behind, "minion"), wording.Choose(behind, "is", "are"), strings.Join(s.describe(), "; "))
		}
	}
	if r.DryRun {
		return out, nil
	}
	p("identity", "asking the cluster to forget it")
	drop := state.IdentityDrop{FP: agreed.FP, Stage: agreed.Stage, Audit: state.Audit{Cause: "rotate"}}
	if _, err := c.cfg.Decide(ctx, drop); err != nil {
		return out, err
	}
	// Not with the switch: a process does not take over while minions are moved to another AES key.
	if agreed.Stage == state.IdentitySwitched {
		if err := c.cfg.ReplaceAES(ctx); err != nil {
			out.Next = append(out.Next, "saltclusterctl rotate aes: the AES key was not replaced")
		}
	}
	return out, nil
}

// describeDown formats a line for each member that is down.
func (c *Change) describeDown(format string) (lines []string) {
	for _, mem := range c.cfg.Log.View().Members() {
		if !c.cfg.Alive(mem.ID) {
			lines = append(lines, fmt.Sprintf(format, mem.ID))
		}
	}
	return lines
}
