package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/saltcrypt"
)

// somePub is what a file in testdata has as a public key.
func somePub(body string) string {
	return "-----BEGIN PUBLIC KEY-----\n" + body + "\n-----END PUBLIC KEY-----"
}

// clusterIdentity is the master key of the cluster that keys are merged into.
var clusterIdentity = strings.Repeat("99:", 31) + "99"

// KeysOf: the cluster knows db1, web1 (another key is denied), web2 pending, and has deleted old1.
func (f *fake) KeysOf(_ context.Context, r adminapi.KeysOfRequest) (adminapi.KeysOf, error) {
	out := adminapi.KeysOf{Rev: 16, Keys: []adminapi.MinionKey{}}
	for _, k := range append([]adminapi.MinionKey{
		{ID: "db1", State: adminapi.KeyAccepted, Fingerprint: saltcrypt.Fingerprint(somePub("QUFB")), Rev: 12},
		{ID: "web1", State: adminapi.KeyAccepted, Fingerprint: saltcrypt.Fingerprint(somePub("QkJC")), Rev: 13},
		{ID: "web2", State: adminapi.KeyPending, Fingerprint: saltcrypt.Fingerprint(somePub("Q0ND")), Rev: 14},
		{ID: "old1", State: adminapi.KeyDeleted, Rev: 11},
	}, f.put...) {
		if slices.Contains(r.IDs, k.ID) {
			out.Keys = append(out.Keys, k)
		}
	}
	return out, f.err
}

// PutKeys refuses app2, and knows the others from then on.
func (f *fake) PutKeys(_ context.Context, r adminapi.PutKeysRequest) (adminapi.DecidedKeys, error) {
	out := adminapi.DecidedKeys{Rev: 17}
	for _, k := range r.Keys {
		d := adminapi.DecidedKey{ID: k.ID}
		if k.ID == "app2" {
			d.Error = fmt.Sprintf("key %q is at revision 18, the proposal is based on %d", k.ID, k.BaseRev)
		} else if k.State != "" {
			f.put = append(f.put, adminapi.MinionKey{ID: k.ID, State: k.State, Fingerprint: saltcrypt.Fingerprint(k.Pub),
				Rev: 17})
		}
		if k.Denied != "" {
			f.put = append(f.put, adminapi.MinionKey{ID: k.ID, State: adminapi.KeyDenied,
				Fingerprint: saltcrypt.Fingerprint(k.Denied), Rev: 17})
		}
		out.Keys = append(out.Keys, d)
	}
	return out, f.err
}

func merges() *fake {
	f := healthy()
	f.status.Cluster.IdentityFingerprint = clusterIdentity
	return f
}
