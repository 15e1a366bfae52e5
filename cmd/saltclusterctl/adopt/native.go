package adopt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"saltclusterd/cmd/saltclusterctl/doctor"
	"saltclusterd/cmd/saltclusterctl/keyset"
	"saltclusterd/durable"
	"saltclusterd/fsync/mmapkeys"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltcrypt"
)

// native is the cluster that Salt 3007 and 3008 make by themselves. Its minions trust cluster.pem, and its masters have
// their minion keys beside that, in cluster_pki_dir. A master that leaves it needs both in its own pki_dir.
type native struct {
	id, pki string
	where   string // the file that sets cluster_id
	port    int    // cluster_pool_port
	store   *mmapkeys.Geometry
}

// setsNative says whether a master with this configuration belongs to Salt's own cluster.
func setsNative(m *localmaster.Config) bool {
	v, ok := m.Raw("cluster_id")
	return ok && v != nil && m.Version.Major >= 3007
}

func (s *Site) readNative() {
	bare, err := s.withoutDropIn()
	if err != nil || !setsNative(bare) || s.isMember() || localmaster.IsDropIn(s.DropInText) && len(s.findMarkers()) > 0 {
		return // in the last case pki_dir has been a cluster's of ours since, and knows more
	}
	s.native = &native{id: bare.Text("cluster_id"), pki: bare.Text("cluster_pki_dir"), where: bare.SetBy("cluster_id"),
		port: int(bare.Int("cluster_pool_port")), store: Store(bare)}
	if s.native.pki == "" {
		s.native.pki = bare.PkiDir
	}
	if s.native.port == 0 {
		s.native.port = nativePort
	}
}

const nativePort = 4520

func (n *native) keyFile() string { return filepath.Join(n.pki, "cluster.pem") }

func (n *native) readPrivate(ctx context.Context) ([]byte, error) {
	if text := storedKey(ctx, n.pki, n.store, "cluster.pem"); text != nil {
		return text, nil
	}
	return os.ReadFile(n.keyFile())
}

// poolPort is the peer port that saltclusterd is to have. Salt's own cluster keeps its port while its masters leave it
// one by one, so saltclusterd uses the next port beside it.
func (s *Site) poolPort() int {
	port := s.Own.Cluster.PoolPort
	if _, set := s.OwnSource["cluster_pool_port"]; s.native != nil && !set && port == s.native.port {
		return port + 1
	}
	return port
}

// leavesNative tells what becomes of the other cluster, and finds out which keys have to be moved.
func (c *checks) leavesNative() {
	s := c.site
	if s.native == nil {
		return
	}
	c.addFinding("native", doctor.Warn, s.native.where,
		fmt.Sprintf("this master belongs to Salt's own cluster %s, and leaves it when it is restarted", s.native.id),
		"until the other masters follow, each cluster reaches only its own minions and does not see keys accepted in the other",
		"afterwards remove cluster_id and the other cluster_ options from that file; until then the drop-in overrides them")
	c.addFinding("native", doctor.Warn, "",
		"a minion whose ports 4505 and 4506 lead to masters of both clusters would sign in again and again",
		"the two clusters have different AES keys",
		"configure the load balancer to keep this master apart from masters that are still in Salt's own cluster")
	if port := s.poolPort(); port != s.native.port {
		c.addOK("native", "", "saltclusterd uses port %d, tcp and udp, between the nodes, because Salt's own cluster uses %d", port,
			s.native.port)
	}
	if s.native.pki == s.Master.PkiDir {
		return
	}
	keys, err := c.nativeKeys()
	if err != nil {
		c.addFinding("keys", doctor.Fail, s.native.pki, err.Error(), "the salt-master would lack its minions' keys", "run this command as root")
		return
	}
	if s.native.store != nil {
		if files, _ := filepath.Glob(filepath.Join(s.Master.PkiDir, ".mmap_*")); len(files) > 0 {
			c.addFinding("keys", doctor.Fail, files[0],
				"found a key store that this master did not use while in Salt's cluster",
				"the master would adopt its keys",
				"move "+filepath.Join(s.Master.PkiDir, ".mmap_*")+" away")
		}
	}
	have, _, err := keyset.Collect(context.Background(), s.Master.PkiDir, nil)
	if err != nil {
		c.addFinding("keys", doctor.Fail, s.Master.PkiDir, err.Error(), "", "run this command as root")
		return
	}
	if !slices.Equal(have, keys) {
		c.moved = keys
		if c.moved == nil {
			c.moved = []keyset.Key{}
		}
	}
}

func (c *checks) nativeKeys() ([]keyset.Key, error) {
	keys, odd, err := keyset.Collect(context.Background(), c.site.native.pki, c.site.native.store)
	for _, path := range odd {
		c.addFinding("keys", doctor.Warn, path, "is not a public key", "it is not copied", "")
	}
	return keys, err
}

// nativeFiles are the key and the minion keys in the master's own pki_dir. They come before the drop-in: without it the
// master still starts as it did, but for a check of Salt's own cluster that its master.pem has not changed.
func (s *Site) nativeFiles(moved []keyset.Key) (files []File) {
	if s.native == nil {
		return nil
	}
	if private, _, err := localmaster.ReadIdentity(s.Master); err != nil || !s.isSameKey(private) {
		files = append(files, File{
			Path: filepath.Join(s.Master.PkiDir, "master.pem"),
			What: "the key of Salt's own cluster; a backup of the old one stays in the same directory", Secret: true, master: true,
			act: s.installNative,
		})
	}
	if moved != nil {
		counts := keyset.Set{Keys: moved}.Counts()
		var parts []string
		for _, state := range []string{adminapi.KeyAccepted, adminapi.KeyPending, adminapi.KeyRejected, adminapi.KeyDenied} {
			if n := counts[state]; n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n, state))
			}
		}
		if len(parts) == 0 {
			parts = []string{"none"}
		}
		files = append(files, File{
			Path: filepath.Join(s.Master.PkiDir, "minions*"),
			What: "the minion keys of Salt's own cluster: " + strings.Join(parts, ", "), master: true,
			act: func() error { return s.moveKeys(moved, time.Now()) },
		})
	}
	return files
}

func (s *Site) isSameKey(private []byte) bool {
	key, err := saltcrypt.ParseMasterKey(private)
	return err == nil && s.Key != nil && key.Public().Equal(s.Key.Public())
}

func (s *Site) installNative() error {
	private, err := s.native.readPrivate(context.Background())
	if err != nil {
		return err
	}
	_, _, err = localmaster.InstallIdentity(s.Master, private, nil)
	return err
}

// placeOf is where a master looks for keys of a state.
func placeOf(state string) string {
	switch state {
	case adminapi.KeyPending:
		return "minions_pre"
	case adminapi.KeyRejected:
		return "minions_rejected"
	case adminapi.KeyDenied:
		return "minions_denied"
	}
	return "minions"
}

// moveKeys makes pki_dir hold these minion keys and no others. What it held is kept aside: the master has not used it
// since it belonged to the other cluster.
func (s *Site) moveKeys(keys []keyset.Key, now time.Time) error {
	pki := s.Master.PkiDir
	owner, err := s.Master.Owner()
	if err != nil {
		return err
	}
	want := map[string]string{}
	for _, k := range keys {
		want[filepath.Join(placeOf(k.State), k.ID)] = k.Pub
	}
	aside := filepath.Join(pki, "before-"+now.UTC().Format("20060102T150405Z"))
	for _, dir := range keyDirs {
		if err := s.keyDir(filepath.Join(pki, dir), owner); err != nil {
			return err
		}
		entries, err := os.ReadDir(filepath.Join(pki, dir))
		if err != nil {
			return err
		}
		for _, e := range entries {
			name := filepath.Join(dir, e.Name())
			if strings.HasPrefix(e.Name(), ".") {
				continue
			}
			if old, err := os.ReadFile(filepath.Join(pki, name)); err == nil && want[name] == string(old) {
				delete(want, name)
				continue
			}
			if err := s.keyDir(filepath.Join(aside, dir), owner); err != nil {
				return err
			}
			if err := os.Rename(filepath.Join(pki, name), filepath.Join(aside, name)); err != nil {
				return err
			}
		}
	}
	o := durable.Options{Mode: 0o644}
	if owner != localmaster.Unowned {
		o.Owner = (*durable.Owner)(&owner)
	}
	for name, text := range want {
		if err := durable.Write(filepath.Join(pki, name), o, durable.Content([]byte(text))); err != nil {
			return err
		}
	}
	return durable.SyncFS(pki) // also of what was moved
}

// keyDir makes a directory of keys as a master would.
func (s *Site) keyDir(path string, owner localmaster.Owner) error {
	if info, err := os.Lstat(path); err == nil && !info.IsDir() {
		return fmt.Errorf("%s is not a directory", path)
	}
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = os.Mkdir(path, 0o700)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil && owner != localmaster.Unowned {
		err = os.Chown(path, owner.UID, owner.GID)
	}
	if err == nil && owner != localmaster.Unowned && filepath.Dir(path) != s.Master.PkiDir {
		err = os.Chown(filepath.Dir(path), owner.UID, owner.GID)
	}
	return err
}
