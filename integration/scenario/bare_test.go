//go:build integration

package scenario

import (
	"testing"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
)

// The yardstick must stand before anything is measured with it.
func TestBareMasterServesAllMinions(t *testing.T) {
	for _, v := range lab.Versions {
		t.Run(v, func(t *testing.T) {
			l := labtest.New(t, lab.Options{})
			b, err := l.NewBare(t.Context(), v, lab.Versions, nil, nil)
			labtest.Must(t, err)
			labtest.Must(t, b.Up(t.Context()))
			got, err := b.Master.Pub(t.Context(), "*", "state.apply")
			labtest.Must(t, err)
			for _, m := range b.Minions {
				if err := m.CheckApplied(got[m.ID]); err != nil {
					t.Errorf("%s: %v", m.ID, err)
				}
			}
		})
	}
}
