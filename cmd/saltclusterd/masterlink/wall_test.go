package masterlink

import (
	"slices"
	"testing"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/localmaster/configtest"
	"saltclusterd/sidecar/wall"
)

func TestWallPolicy(t *testing.T) {
	for version, filters := range map[string]bool{
		"3006.0": false, "3006.11": false, "3006.12": true, "3007.3": false, "3007.4": true, "3008.0": true,
	} {
		v, err := localmaster.ParseVersion(version)
		require.NoError(t, err)
		if filtersTags(v) != filters {
			t.Errorf("%s filters: %t", version, !filters)
		}
	}
	policy := func(text string) wall.Policy { return WallPolicy(configtest.Load(t, 3008, text)) }
	if p := policy(""); p.FileRecv || p.Syndics || p.OnDemand != nil || !p.Filters {
		t.Errorf("the defaults of stock: %+v", p)
	}
	p := policy("file_recv: True\norder_masters: True\non_demand_ext_pillar: [libvirt]\n")
	if !p.FileRecv || !p.Syndics || !slices.Equal(p.OnDemand, []string{"libvirt"}) {
		t.Errorf("%+v", p)
	}
}
