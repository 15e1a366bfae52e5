package masterlink

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/fsync/keydir"
	"saltclusterd/fsync/mmapkeys"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/localmaster/configtest"
)

// storeMaster is a 3008 master with a key store.
func storeMaster(t *testing.T, more string) *localmaster.Config {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "pki"), 0o700))
	text := fmt.Sprintf("id: box_master\npki_dir: %s/pki\nkeys.cache_driver: mmap_key\nmmap_key_size: 101\n%s", dir, more)
	return configtest.Write(t, filepath.Join(dir, "master"), 3008, text)
}

func TestKeyStore_PlaceHidden(t *testing.T) {
	k := KeyStore{Master: storeMaster(t, "")}
	for range 2 {
		require.NoError(t, k.PlaceHidden(t.Context(), localmaster.HiddenID, "key"))
	}
	e, ok, err := k.Bank(mmapkeys.Keys).Get(t.Context(), localmaster.HiddenID)
	if err != nil || !ok || e.Listed || string(e.Value) != "\x01key" {
		t.Errorf("%+v, %v, %v", e, ok, err)
	}
	if !strings.HasPrefix(localmaster.HiddenID, mmapkeys.HiddenPrefix) {
		t.Error("a repair would list the hidden minion")
	}
}

func TestKeyStore_Geometry(t *testing.T) {
	master := storeMaster(t, "mmap_key_id_size: 40\n")
	g := KeyStore{Master: master}.Geometry()
	if g == nil || *g != (mmapkeys.Geometry{Slots: 101, SlotSize: 96, KeySize: 40}) {
		t.Errorf("%+v", g)
	}
	fatal := func(master *localmaster.Config, shared bool) (out []string) {
		i := NewInspector(InspectorConfig{
			Master: func() *localmaster.Config { return master }, Shared: shared,
			EveryMaster: config.Events{}.EveryMaster, Logger: slog.New(slog.DiscardHandler),
		})
		for _, f := range i.Findings() {
			if f.Option == "keys.cache_driver" && f.Fatal {
				out = append(out, f.Message)
			}
		}
		return out
	}
	if f := fatal(master, false); len(f) != 0 {
		t.Errorf("%q", f)
	}
	if f := fatal(master, true); len(f) != 1 || (KeyStore{Master: master, Shared: true}).Geometry() != nil {
		t.Errorf("on a share: %q", f)
	}
	master = configtest.Load(t, 3008, "keys.cache_driver: redis\n")
	f := fatal(master, false)
	if len(f) != 1 || !strings.Contains(f[0], `"redis"`) || (KeyStore{Master: master}).Geometry() != nil {
		t.Errorf("another driver: %q", f)
	}
}

func TestKeyStore_Check(t *testing.T) {
	store, none := KeyStore{Master: storeMaster(t, "")}, KeyStore{Master: configtest.Load(t, 3008, "")}
	for name, c := range map[string]struct {
		of    KeyStore
		st    *keydir.StoreStatus
		level health.Level
		want  string // in the reason
	}{
		"none":        {none, nil, health.OK, ""},
		"not read":    {store, nil, health.OK, ""},
		"in step":     {store, &keydir.StoreStatus{Keys: 3, Fill: 0.03}, health.OK, ""},
		"not in step": {store, &keydir.StoreStatus{Err: "another size", Lacking: 1}, health.Fail, "another size"},
		"no room":     {store, &keydir.StoreStatus{Lacking: 2, Fill: 0.9}, health.Warn, "no room for 2 minion keys"},
		"nearly full": {store, &keydir.StoreStatus{Fill: 0.81}, health.Warn, "81 % full"},
	} {
		if r := c.of.Check(c.st); r.Level != c.level || !strings.Contains(r.Reason, c.want) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if l := store.Line(&keydir.StoreStatus{Keys: 3, Lacking: 1}); l == nil || l.Busy || l.Keys != 3 || l.Lacking != 1 {
		t.Errorf("%+v", l)
	}
	if l := store.Line(nil); l == nil || !l.Busy {
		t.Errorf("before it was read: %+v", l)
	}
	if l := none.Line(nil); l != nil {
		t.Errorf("without a store: %+v", l)
	}
}
