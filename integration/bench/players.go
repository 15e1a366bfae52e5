package main

import (
	"fmt"
	"path/filepath"

	"saltclusterd/integration/herd"
	"saltclusterd/integration/lab"
	"saltclusterd/sidecar/saltcrypt"
)

// signIn is one sign-in on its way: what was asked and how it was answered.
type signIn struct {
	*herd.SignIn
	reply []byte
}

// check does with the reply all that a minion does with it.
func (s *signIn) check(known *saltcrypt.PublicKey) (*herd.Credentials, error) {
	outcome, c, err := s.Check(s.reply, known)
	if err == nil && c == nil {
		err = fmt.Errorf("%w: %s", herd.ErrReply, outcome)
	}
	return c, err
}

// newMinions makes minions that are played.
func newMinions(n int) ([]*herd.Identity, error) {
	key, err := herd.NewFastKey()
	if err != nil {
		return nil, err
	}
	all := make([]*herd.Identity, n)
	for i := range all {
		if all[i], err = herd.NewIdentity(fmt.Sprintf("bench%d", i), key); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// accept puts the keys of minions into a master's directory of accepted keys, as salt-key does, and fleet more. The master must
// not run yet.
func accept(m *lab.Master, minions []*herd.Identity, fleet int) error {
	if len(minions) == 0 {
		return nil
	}
	var ids []string
	for _, mn := range minions {
		ids = append(ids, mn.ID)
	}
	for i := range fleet {
		ids = append(ids, fmt.Sprintf("idle%d", i))
	}
	return herd.Accept(filepath.Join(m.PKIDir(), "minions"), minions[0].Key, ids...)
}
