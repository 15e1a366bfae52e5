package localmaster_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"saltclusterd/integration/check"
	"saltclusterd/integration/patience"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/eventbus"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/localmaster/mastertest"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/upstream"
)

// TestStockMaster goes through a master's life beside the sidecar, once for each version.
func TestStockMaster(t *testing.T) {
	for _, v := range mastertest.Versions(t) {
		t.Run(v, func(t *testing.T) {
			m := mastertest.New(t, mastertest.Options{Version: v, ID: "node1_master"})
			r := newStockRig(t, m)
			r.installBeforeFirstStart()
			m.Start()
			r.open()
			r.identityLayout()
			first := r.signIn()
			r.publicationOpens(first)
			r.sessions()
			r.bus()
			r.replaceIdentity()
			r.umask(ownUmask())
			m.Stop()
			r.startWith(0o027)
			r.umask(0o027)
			r.afterRestart(first)
		})
	}
}

type stockRig struct {
	t      *testing.T
	m      *mastertest.Master
	cfg    *localmaster.Config
	req    *upstream.ReqClient
	hidden *localmaster.Hidden
	key    *saltcrypt.MasterKey // the cluster's
	minion *saltcrypt.MasterKey
}

func newStockRig(t *testing.T, m *mastertest.Master) *stockRig {
	r := &stockRig{t: t, m: m}
	ver, err := localmaster.DetectVersion(context.Background(), mastertest.Bin(t, m.Version, "salt-master"))
	if err != nil || ver.Text != m.Version {
		t.Fatalf("detected %v, %v", ver, err)
	}
	if r.cfg, err = localmaster.LoadConfig(m.ConfigPath, ver); err != nil {
		t.Fatal(err)
	}
	if r.cfg.PkiDir != m.PkiDir || r.cfg.CacheDir != m.CacheDir || r.cfg.SockDir != m.SockDir ||
		r.cfg.ReqAddr() != m.ReqAddr() {
		t.Fatalf("configuration %+v does not fit the master's %+v", r.cfg, m)
	}
	r.key, r.minion = r.newKey(), r.newKey()
	return r
}

func (r *stockRig) newKey() *saltcrypt.MasterKey {
	k, err := saltcrypt.GenerateMasterKey(2048)
	require.NoError(r.t, err)
	return k
}

func (r *stockRig) open() {
	r.req = upstream.NewReqClient(upstream.ReqConfig{Addr: r.cfg.ReqAddr(), Timeout: 20 * time.Second})
	require.NoError(r.t, r.req.Open(context.Background()))
	r.t.Cleanup(func() { r.req.Close() })
	r.hidden = localmaster.NewHidden(r.cfg, localmaster.HiddenOptions{KeyDir: r.t.TempDir(), Requester: r.req})
}

func (r *stockRig) install() (changed bool, backup string) {
	r.t.Helper()
	changed, backup, err := localmaster.InstallIdentity(r.cfg, r.key.PEM(), nil)
	require.NoError(r.t, err)
	return changed, backup
}

func (r *stockRig) installBeforeFirstStart() {
	if changed, backup := r.install(); !changed || backup != "" {
		r.t.Errorf("first install: changed %v, backup %q", changed, backup)
	}
	if changed, backup := r.install(); changed || backup != "" {
		r.t.Errorf("second install: changed %v, backup %q", changed, backup)
	}
}

// identityLayout checks that the started master left the files as they were, which means that they were in its layout.
func (r *stockRig) identityLayout() {
	if changed, backup := r.install(); changed || backup != "" {
		r.t.Errorf("install under a running master: changed %v, backup %q", changed, backup)
	}
	pem, pub, err := localmaster.ReadIdentity(r.cfg)
	if err != nil || string(pem) != string(r.key.PEM()) || saltcrypt.CleanKey(string(pub)) != r.key.PublicText() {
		r.t.Errorf("identity on disk is not the cluster's: %v", err)
	}
	for name, mode := range map[string]os.FileMode{"master.pem": 0o400, "master.pub": 0o644} {
		info, err := os.Stat(filepath.Join(r.cfg.PkiDir, name))
		if err != nil || info.Mode().Perm() != mode {
			r.t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	link, err := os.Readlink(filepath.Join(r.cfg.PkiDir, "master.pem"))
	if want := "node1.pem"; r.cfg.Version.Major >= 3008 && link != want {
		r.t.Errorf("master.pem is a link to %q, want %q", link, want)
	} else if r.cfg.Version.Major < 3008 && err == nil {
		r.t.Error("master.pem is a link")
	}
}

func (r *stockRig) signIn() localmaster.Secrets {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	s, err := r.hidden.SignIn(ctx)
	if err != nil {
		r.t.Fatalf("%v\n%s", err, r.m.Log())
	}
	if s.PublishPort != r.m.PublishPort || s.MasterPub != r.key.PublicText() {
		r.t.Errorf("port %d, the cluster's key: %v", s.PublishPort, s.MasterPub == r.key.PublicText())
	}
	if again, err := r.hidden.SignIn(ctx); err != nil || !again.AES.Equal(s.AES) {
		r.t.Errorf("second sign-in: another key or %v", err)
	}
	if out := r.m.Run("salt-key", "-L"); strings.Contains(out, localmaster.HiddenID) {
		r.t.Errorf("the hidden minion shows:\n%s", out)
	}
	return s
}

// publicationOpens publishes to a minion that exists as a key only and opens what the master sends.
func (r *stockRig) publicationOpens(s localmaster.Secrets) {
	require.NoError(r.t, os.WriteFile(filepath.Join(r.cfg.PkiDir, "minions", "m1"), []byte(r.minion.PublicText()),
		0o644))
	up, got := make(chan struct{}, 1), make(chan []byte, 10)
	sub := upstream.NewSubClient(upstream.SubConfig{
		Addr: r.cfg.PubAddr(), OnConnect: func() { up <- struct{}{} },
		OnMessage: func(parts [][]byte) { got <- parts[len(parts)-1] },
	})
	require.NoError(r.t, sub.Open(context.Background()))
	defer sub.Close()
	<-up
	deadline := time.After(60 * time.Second)
	for {
		r.m.Run("salt", "--async", "m1", "test.ping") // the subscription may not have reached the master's socket yet
		select {
		case body := <-got:
			r.open1(s, body)
			return
		case <-deadline:
			r.t.Fatal("no publication came")
		case <-time.After(2 * time.Second):
		}
	}
}

func (r *stockRig) open1(s localmaster.Secrets, body []byte) {
	env, err := saltwire.ParsePub(body)
	require.NoError(r.t, err)
	plain, err := saltcrypt.NewCrypticle(s.AES).Open(nil, env.Load)
	require.NoError(r.t, err, "the hidden minion's key does not open a publication")
	if p, err := saltwire.PeekPub(plain); err != nil || p.JID == "" {
		r.t.Errorf("publication %+v, %v", p, err)
	}
}

// request sends a command of minion m1 under a session key and returns whether the reply is sealed under it too.
func (r *stockRig) request(key saltcrypt.Key) bool {
	r.t.Helper()
	tok, err := r.minion.SignX931([]byte("salt"))
	require.NoError(r.t, err)
	nonce := strings.Repeat("0123456789abcdef", 2)
	load, err := saltwire.AppendAny(nil, map[string]any{
		"cmd": "_file_envs", "id": "m1", "tok": tok, "nonce": nonce, "ts": time.Now().Unix(),
	}, saltwire.Wire)
	require.NoError(r.t, err)
	c := saltcrypt.NewCrypticle(key)
	body := saltwire.AppendEnvelope(nil, saltwire.Envelope{
		Enc: saltwire.EncAES, ID: "m1", Load: c.Seal(nil, load, nil), Version: 3, HasVersion: true,
		EncAlgo: "OAEP-SHA1", SigAlgo: "PKCS1v15-SHA1",
	})
	reply, err := r.req.Do(context.Background(), body)
	require.NoError(r.t, err)
	sealed, ok := saltwire.Bytes(reply)
	if !ok {
		return false
	}
	plain, err := c.Open(nil, sealed)
	return err == nil && strings.HasPrefix(string(plain), nonce)
}

// sessions: the master takes the key it is given, on every worker, and 3007 and later take another one while running.
func (r *stockRig) sessions() {
	o, err := localmaster.SessionsOf(r.cfg)
	require.NoError(r.t, err)
	s := localmaster.NewSessions(o)
	for range 2 {
		want, err := saltcrypt.NewKey()
		require.NoError(r.t, err)
		local, same, err := s.Ensure("m1", want)
		require.NoError(r.t, err)
		for i := range 15 {
			if !r.request(local) {
				r.t.Fatalf("request %d under the ensured key (same %v) was refused", i, same)
			}
		}
		if !same && r.cfg.Version.RereadsSessions() {
			r.t.Error("a running master that notices changes was left with its old key")
		}
	}
}

const listenBus = `
import json, sys, logging
import salt.config, salt.utils.event
opts = salt.config.master_config(sys.argv[1])
with salt.utils.event.get_event("master", opts=opts, listen=True) as bus:
    bus.connect_pub()
    bus.fire_event({"from": "python", "n": 1}, "test/ready")
    while True:
        event = bus.get_event(wait=20, full=True)
        if event is None:
            sys.exit("no event")
        if event["tag"] == "salt/auth":
            print(json.dumps(event))
            break
        bus.fire_event({"from": "python", "n": 1}, "test/ready")
`

func (r *stockRig) bus() {
	b := eventbus.New(r.cfg, eventbus.Options{})
	require.NoError(r.t, b.Open(context.Background()))
	defer b.Close()
	own := eventbus.AuthEvent{Result: true, Act: "accept", ID: "m1", Pub: r.minion.PublicText()}
	seen, many := make(chan map[string]any, 100), make(chan string, 100)
	cancel := b.Subscribe(func(tag string, data []byte) {
		if strings.HasPrefix(tag, "many/") {
			many <- tag
		}
		m, _, err := msgp.ReadMapStrIntfBytes(data, nil)
		check.NoError(r.t, err, "event", tag)
		switch tag {
		case "test/ready":
			check.NoError(r.t, b.FireAuth(context.Background(), own))
		case "salt/auth":
			select {
			case seen <- m:
			default:
			}
		}
	})
	defer cancel()
	patience.WaitFor(r.t, "the master", b.Up)
	var event struct {
		Data map[string]any `json:"data"`
	}
	require.NoError(r.t, json.Unmarshal([]byte(r.m.Python(listenBus, r.m.ConfigPath)), &event))
	ours := <-seen
	if !reflect.DeepEqual(ours, event.Data) {
		r.t.Errorf("Python saw %v, the bus %v", event.Data, ours)
	}
	for i := range 20 { // what the master does not take as it is framed may cost it the events after it
		require.NoError(r.t, b.FireTrimmed(context.Background(), fmt.Sprint("many/", i), []byte("\x80")))
	}
	for i := range 20 {
		select {
		case tag := <-many:
			if tag != fmt.Sprint("many/", i) {
				r.t.Errorf("event %d is %s", i, tag)
			}
		case <-time.After(20 * time.Second):
			r.t.Fatalf("%d of 20 events came", i)
		}
	}
	r.signIn() // makes the master fire one of its own
	for deadline := time.After(20 * time.Second); ; {
		select {
		case stock := <-seen:
			if stock["id"] != localmaster.HiddenID {
				continue
			}
			for key, v := range stock {
				if reflect.TypeOf(v) != reflect.TypeOf(ours[key]) {
					r.t.Errorf("salt/auth entry %s: stock has %v, ours %v", key, v, ours[key])
				}
			}
			if len(stock) != len(ours) || len(stock["_stamp"].(string)) != len(ours["_stamp"].(string)) {
				r.t.Errorf("salt/auth: stock %v, ours %v", stock, ours)
			}
			return
		case <-deadline:
			r.t.Fatal("the master's own salt/auth did not come")
		}
	}
}

// replaceIdentity puts another key under the running master.
func (r *stockRig) replaceIdentity() {
	former := r.key
	r.key = r.newKey()
	changed, backup := r.install()
	if !changed || backup == "" {
		r.t.Fatalf("replace: changed %v, backup %q", changed, backup)
	}
	info, err := os.Stat(backup)
	if err != nil || info.Mode().Perm() != 0o400 {
		r.t.Errorf("backup %s: %v", backup, err)
	}
	if text, err := os.ReadFile(backup); err != nil || string(text) != string(former.PEM()) {
		r.t.Errorf("backup is not the former key: %v", err)
	}
	s, err := r.hidden.SignIn(context.Background())
	if err == nil && s.MasterPub == r.key.PublicText() {
		r.t.Error("the new key was not to be in use before a restart")
	}
	if err != nil && !errors.Is(err, localmaster.ErrStaleIdentity) {
		r.t.Errorf("sign-in at a master whose files were changed: %v", err)
	}
	r.t.Logf("before the restart: %v", err)
}

// ownUmask is that of this process, whose children masters are.
func ownUmask() uint32 {
	mask := syscall.Umask(0o022)
	syscall.Umask(mask)
	return uint32(mask)
}

func (r *stockRig) startWith(umask int) {
	defer syscall.Umask(syscall.Umask(umask))
	r.m.Start()
}

// umask checks what is seen of the running master's.
func (r *stockRig) umask(want uint32) {
	r.t.Helper()
	patience.WaitFor(r.t, "the master", func() bool {
		got, err := eventbus.Umask(r.t.Context(), r.cfg)
		if err != nil || got != want {
			r.t.Logf("umask %03o, want %03o: %v", got, want, err)
		}
		return err == nil && got == want
	})
}

func (r *stockRig) afterRestart(first localmaster.Secrets) {
	r.identityLayout()
	if s := r.signIn(); s.AES.Equal(first.AES) {
		r.t.Error("a restarted master kept its key: then nobody need sign in again")
	}
}
