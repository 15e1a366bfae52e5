package state

import (
	"errors"
	"maps"
	"slices"

	"saltclusterd/gossip/node"
)

// A node that does not know these commands must not skip them, so none of them
// is proposed before all members know them: see Level.

// TokenAdd ("token.add") lets the holder of a token join once.
type TokenAdd struct {
	ID      string  `json:"id"`
	Public  []byte  `json:"public"`
	Expires int64   `json:"expires"`
	For     node.ID `json:"for,omitempty"`
	Note    string  `json:"note,omitempty"`
	Audit
}

// Type implements Command.
func (TokenAdd) Type() string { return "token.add" }

func (c TokenAdd) joinToken() JoinToken {
	return JoinToken{ID: c.ID, Public: c.Public, Expires: c.Expires, For: c.For, Note: c.Note, Audit: c.Audit}
}

// Validate implements Command.
func (c TokenAdd) Validate() error { return errors.Join(validToken(c.joinToken()), c.Audit.validate()) }

func (c TokenAdd) applyTo(d *data) Result {
	if i := d.tokenIndex(c.ID); i >= 0 {
		return refuse(Conflict, d.tokens[i].Rev, "there is a token %s", c.ID)
	}
	list := forgetTokens(d.tokens, c.At)
	if len(list) >= MaxTokens {
		return refuse(LimitReached, 0, "%d tokens wait for a node, the maximum", MaxTokens)
	}
	t := c.joinToken()
	t.Rev = d.nextRevision()
	d.tokens = append(list, t)
	return Result{Rev: t.Rev}
}

// forgetTokens leaves out what was spent long before at, and when there are
// still too many, the oldest that are spent. The result is a new slice.
func forgetTokens(tokens []JoinToken, at int64) []JoinToken {
	list := slices.DeleteFunc(slices.Clone(tokens), func(t JoinToken) bool {
		return t.isSpent(at) && at-max(t.Expires, t.Used.At) > keepSpentTokens
	})
	for len(list) >= MaxTokens {
		i := slices.IndexFunc(list, func(t JoinToken) bool { return t.isSpent(at) })
		if i < 0 {
			break
		}
		list = slices.Delete(list, i, i+1)
	}
	return list
}

// TokenDrop ("token.drop") takes a token back; used ones are only forgotten.
type TokenDrop struct {
	ID string `json:"id"`
	Audit
}

// Type implements Command.
func (TokenDrop) Type() string { return "token.drop" }

// Validate implements Command.
func (c TokenDrop) Validate() error { return errors.Join(validTokenID(c.ID), c.Audit.validate()) }

func (c TokenDrop) applyTo(d *data) Result {
	i := d.tokenIndex(c.ID)
	if i < 0 {
		return refuse(NotFound, 0, "there is no token %s", c.ID)
	}
	d.tokens = slices.Delete(slices.Clone(d.tokens), i, i+1)
	return Result{Rev: d.nextRevision()}
}

// JoinAdmit ("join.admit") puts a node on the roster together with what it has
// proven the right to: a token, which is used up by it, or the secret of that
// number. So a member that is behind lets no node in with what was taken back.
type JoinAdmit struct {
	Member MemberAdd `json:"member"`
	Token  string    `json:"token,omitempty"`
	Secret uint64    `json:"secret,omitempty"`
	Audit
}

// Type implements Command.
func (JoinAdmit) Type() string { return "join.admit" }

// Validate implements Command.
func (c JoinAdmit) Validate() error {
	errs := []error{c.Member.Validate(), c.Audit.validate()}
	if c.Token != "" {
		errs = append(errs, validTokenID(c.Token))
	}
	return errors.Join(errs...)
}

func (c JoinAdmit) applyTo(d *data) Result {
	c.Member.Audit = c.Audit
	if c.Token == "" {
		if !d.secrets.Accepted(c.Secret) {
			return refuse(Conflict, d.secrets.Current.Rev, "the cluster secret was changed")
		}
		return c.Member.addMember(d)
	}
	i := d.tokenIndex(c.Token)
	if i < 0 {
		return refuse(NotFound, 0, "the token %s was revoked", c.Token)
	}
	use := TokenUse{By: c.Member.ID, Fingerprint: c.Member.Fingerprint, At: c.At}
	again, refusal := d.mayUse(d.tokens[i], use)
	if refusal != nil {
		return *refusal
	}
	r := c.Member.addMember(d)
	if r.Code != OK || again {
		return r
	}
	d.tokens = slices.Clone(d.tokens)
	t := &d.tokens[i]
	t.Used, t.Rev = use, d.nextRevision()
	return r
}

// mayUse decides whether a node may join with t. A node that did may ask again,
// for it may not have heard the answer.
func (d *data) mayUse(t JoinToken, use TokenUse) (again bool, refusal *Result) {
	say := func(format string, a ...any) *Result {
		r := refuse(Conflict, t.Rev, format, a...)
		return &r
	}
	switch m, member := d.members[use.By]; {
	case t.For != "" && t.For != use.By:
		return false, say("the token %s is for the node %s", t.ID, t.For)
	case t.Used.By == use.By && t.Used.Fingerprint == use.Fingerprint && member && m.Fingerprint == use.Fingerprint:
		return true, nil
	case t.Used.By != "":
		return false, say("the token %s was used by %s", t.ID, t.Used.By)
	case use.At > t.Expires:
		return false, say("the token %s has expired", t.ID)
	}
	return false, nil
}

// MemberCert ("member.cert") gives a member another certificate. Expect is the
// one it replaces, which is worth nothing from then on.
type MemberCert struct {
	ID          node.ID `json:"id"`
	Expect      string  `json:"expect"`
	Fingerprint string  `json:"fingerprint"`
	Audit
}

// Type implements Command.
func (MemberCert) Type() string { return "member.cert" }

// Validate implements Command.
func (c MemberCert) Validate() error {
	return errors.Join(validNode(c.ID), validFingerprint(c.Expect), validFingerprint(c.Fingerprint), c.Audit.validate())
}

func (c MemberCert) applyTo(d *data) Result {
	m, ok := d.members[c.ID]
	switch {
	case !ok:
		return refuse(UnknownMember, 0, "%s is not on the roster", c.ID)
	case m.Fingerprint == c.Fingerprint:
		return Result{Rev: m.Rev}
	case m.Fingerprint != c.Expect:
		return refuse(Conflict, m.Rev, "%s is on the roster with another certificate", c.ID)
	}
	if err := d.checkUnique(m.ID, m.Addr, c.Fingerprint); err != nil {
		return refuse(Conflict, m.Rev, "%v", err)
	}
	m.Fingerprint = c.Fingerprint
	m.Rev, m.Audit = d.nextRevision(), c.Audit
	d.members = maps.Clone(d.members)
	d.members[m.ID] = m
	return Result{Rev: m.Rev}
}
