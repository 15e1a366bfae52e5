package jobs

import (
	"errors"
	"testing"

	"saltclusterd/gossip/node"
	"saltclusterd/integration/patience"
)

// Jobs that a node shall not have are not offered to it.
func TestPullOfReplicasOnly(t *testing.T) {
	w := newWorld(t)
	only := func(c *Config) { c.Replicas = func(string) []node.ID { return []node.ID{"a"} } }
	a := w.add("a", only)
	jid := w.jid()
	a.publish(jid, "m1")
	patience.WaitNil(t, func() error {
		if _, ok := a.store.index.fresh(jid); !ok {
			return errors.New("not known")
		}
		return nil
	})
	var raw []byte
	patience.WaitNil(t, func() (err error) {
		raw, err = a.store.Answer(t.Context(), "b", encodeList(10)) // refused until it has looked at its disk
		return err
	})
	if m, err := decode(raw); err != nil || len(m.digest.jobs) != 0 {
		t.Errorf("%+v, %v", m, err)
	}
}
