// Package admintest serves the admin API of capabilities that a test makes up.
package admintest

import "saltclusterd/sidecar/admin"

// Verbs returns the verbs that fake, which may implement any of the interfaces of package admin, can answer.
func Verbs(fake any) (all []admin.Verbs) {
	add(&all, fake, admin.Reports)
	add(&all, fake, admin.Joining)
	add(&all, fake, admin.Draining)
	add(&all, fake, admin.Governing)
	add(&all, fake, admin.Transferring)
	add(&all, fake, admin.Rotating)
	add(&all, fake, admin.Recovery)
	add(&all, fake, admin.Jobs)
	add(&all, fake, admin.Upgrading)
	add(&all, fake, admin.Walls)
	add(&all, fake, admin.MinionViews)
	add(&all, fake, admin.Verifying)
	add(&all, fake, admin.Keys)
	add(&all, fake, admin.HeldKeys)
	add(&all, fake, admin.KeyTransfer)
	add(&all, fake, admin.LogLevels)
	add(&all, fake, admin.Events)
	add(&all, fake, admin.Checkups)
	add(&all, fake, admin.Roots)
	add(&all, fake, admin.Migration)
	add(&all, fake, admin.Returns)
	add(&all, fake, admin.Tokens)
	return all
}

func add[T any](all *[]admin.Verbs, fake any, verbs func(T) admin.Verbs) {
	if c, ok := fake.(T); ok {
		*all = append(*all, verbs(c))
	}
}
