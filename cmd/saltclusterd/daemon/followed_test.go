package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/health"
	"saltclusterd/sidecar/localmaster/configtest"
	"saltclusterd/sidecar/saltcrypt"
)

// While two identities answer, both follow the options of the master; whether there may be a second one is asked of the
// master of now.
func TestIdentitiesFollowOptions(t *testing.T) {
	t.Parallel()
	n := cluster(t, t.TempDir())[0]
	m := n.tenure.Current()
	signing, err := saltcrypt.GenerateMasterKey(2048)
	require.NoError(t, err)
	pki := t.TempDir()
	for name, text := range map[string]string{"master_sign.pem": string(signing.PEM()), "signature": "made beforehand"} {
		require.NoError(t, os.WriteFile(filepath.Join(pki, name), []byte(text), 0o600))
	}
	signs := "master_sign_pubkey: True\npki_dir: " + pki + "\n"
	obey := func(text string) {
		t.Helper()
		require.NoError(t, m.service().master.Followed.Use(configtest.Load(t, n.master.Version.Major, text)))
	}
	prepare := func() error {
		_, err := n.Rotate(t.Context(), adminapi.RotateRequest{What: adminapi.RotateIdentity, Step: adminapi.IdentityPrepare},
			quiet)
		return err
	}

	obey(signs + "master_use_pubkey_signature: True\nmaster_pubkey_signature: signature\n")
	if err := prepare(); adminapi.CodeOf(err) != adminapi.CodeRefused {
		t.Errorf("a second identity beside a signature that was made beforehand: %v", err)
	}
	obey("")
	require.NoError(t, prepare())
	answers := func(signed bool) func() error {
		return func() error {
			second, options := m.identity.Second()
			if options == nil || options != m.service().master.Followed.Load().From {
				return errors.New("not by the options of now")
			}
			var err error
			if (second.PubSigner != nil) != signed {
				err = fmt.Errorf("signs its key: %v", !signed)
			}
			return err
		}
	}
	eventually(t, "the second identity", answers(false))
	obey(signs)
	eventually(t, "the second identity with a signature", answers(true))
	rotate(t, n, adminapi.RotateRequest{What: adminapi.RotateIdentity, Step: adminapi.IdentityAbort})
	eventually(t, "one identity", func() error {
		if second, options := m.identity.Second(); second != nil || options != nil {
			return errors.New("there are two")
		}
		return nil
	})

	for _, syndics := range []bool{true, false} {
		obey(fmt.Sprintf("order_masters: %t\n", syndics))
		check.Equal(t, m.service().master.HasSyndics(), syndics, "order_masters")
	}

	check.Equal(t, m.service().master.Followed.Check(), fine)
	if err := m.service().master.Followed.Use(configtest.Load(t, n.master.Version.Major,
		"master_sign_pubkey: True\npki_dir: /nonexistent\n")); err == nil {
		t.Error("no error without a key to sign with")
	}
	if r := m.service().master.Followed.Check(); r.Level != health.Warn ||
		!strings.Contains(r.Reason, "/nonexistent/master_sign.pem") {
		t.Errorf("%+v", r)
	}
}

// A process that takes over reads the master's options before it has opened its doors.
func TestKick_BeforeOpen(t *testing.T) {
	d, err := New(&config.Config{ID: "a"}, "test", slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	d.checks.Kick("options")
}

// A master that has started with options which cannot be read here answers by them itself, until they can.
func TestRereadOptions_Unreadable(t *testing.T) {
	t.Parallel()
	n := cluster(t, t.TempDir())[0]
	s := n.tenure.Current().service()
	native := func() (out []bool) {
		files, _ := s.native.Files.Native()
		mines, _ := s.native.Mines.Native("_mine")
		fired, _ := s.native.Events.Native()
		returned, _ := s.native.Returns.Native("_return")
		return []bool{files, mines, fired, returned}
	}
	if got := native(); slices.Contains(got, false) {
		t.Fatalf("%v", got)
	}
	text, err := os.ReadFile(n.cfg.Salt.Config)
	require.NoError(t, err)
	for _, c := range []struct {
		text   string
		native bool
	}{{string(text) + "a: [\n", false}, {string(text), true}} {
		require.NoError(t, os.WriteFile(n.cfg.Salt.Config, []byte(c.text), 0o600))
		s.master.RereadOptions()
		if got := native(); slices.Contains(got, !c.native) {
			t.Errorf("%v, want %v", got, c.native)
		}
		if f := s.native.FilesStatus(); !c.native && !strings.Contains(f.Reason, "its options cannot be read: ") {
			t.Errorf("%+v", f)
		}
	}
}
