package adopt

import (
	"os"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
)

// adopted is a host on which setup has written its files.
func adopted(t *testing.T, master string) *host {
	h := newHost(t, master)
	p := h.look(nil).Plan()
	if err := Write(h.path("etc/salt/saltclusterd"), p.Files); err != nil || p.Failed() > 0 {
		t.Fatalf("%v\n%s", err, text(p.Checks))
	}
	h.listens(loopback)
	return h
}

func TestLeaveLast(t *testing.T) {
	h := adopted(t, "interface: 10.0.0.11\n")
	l := h.look(serving()).Leaving(&adminapi.Verification{})
	if l.Failed() > 0 || len(l.Others) != 0 || l.Remove != h.path(dropInFile) || l.Aside != "" {
		t.Fatalf("%+v\n%s", l, text(l.Checks))
	}
	wants(t, text(l.Checks), "the last of salt", "without the drop-in, the salt-master listens on 10.0.0.11")
	wants(t, l.Next[0], "haproxy --bare")
	wants(t, l.Next[1], "disable --now saltclusterd; systemctl restart salt-master")
	session := "var/cache/salt/master/sessions/web1"
	h.write(session, "key")
	if ahead := time.Now().Add(1000 * time.Hour); os.Chtimes(h.path(session), ahead, ahead) != nil {
		t.Fatal("the session file cannot be dated")
	}
	require.NoError(t, l.Restore())
	if _, err := os.Stat(h.path(dropInFile)); !os.IsNotExist(err) {
		t.Errorf("the drop-in is there: %v", err)
	}
	if info, err := os.Stat(h.path(session)); err != nil || info.ModTime().After(time.Now()) {
		t.Errorf("the salt-master would never make a minion a new session key: %v", err)
	}
	if l = h.look(serving()).Leaving(&adminapi.Verification{}); l.Remove != "" || l.Restore() != nil {
		t.Errorf("again: %+v", l)
	}
	st := serving()
	st.Node.Returns = &adminapi.Returns{Unanswered: 2}
	l = h.look(st).Leaving(&adminapi.Verification{})
	if l.Failed() > 0 {
		t.Errorf("%s", text(l.Checks))
	}
	wants(t, text(l.Checks), "2 returns that the salt-master did not answer are set aside")
}

func TestLeaveOthers(t *testing.T) {
	h := adopted(t, "")
	st := serving()
	st.Members = append(st.Members, adminapi.Member{ID: "m2"}, adminapi.Member{ID: "m3"}, adminapi.Member{ID: "m4"})
	l := h.look(st).Leaving(&adminapi.Verification{})
	if l.Failed() > 0 || strings.Join(l.Others, " ") != "m2 m3 m4" || len(l.Next) != 3 {
		t.Errorf("%+v\n%s", l, text(l.Checks))
	}
	wants(t, text(l.Checks), "its minions go to m2, m3, m4", "each job is on 3 of 4 nodes")
	h.write("srv/salt/.saltcluster-area/keep/1", "what was replaced")
	h.write("etc/salt/master.d/roots.conf", "file_roots: {base: ["+h.path("srv/salt")+"]}\n")
	wants(t, strings.Join(h.look(st).Leaving(&adminapi.Verification{}).Next, "\n"),
		"rm -r "+h.path("srv/salt/.saltcluster-area"))
	st.Node.Returns = &adminapi.Returns{Unanswered: 2}
	if said := text(h.look(st).Leaving(&adminapi.Verification{}).Checks); strings.Contains(said, "put aside") {
		t.Errorf("they go to the others: %s", said)
	}
}

// What the salt-master would lack is in the way.
func TestLeaveRefuses(t *testing.T) {
	lacking := &adminapi.Verification{Sections: []adminapi.VerifiedSection{{Name: "keys",
		Differences: []adminapi.VerifyDifference{
			{Item: "web1", Nodes: map[string]string{"m1": "x", "m2": ""}},
			{Item: "web2", Nodes: map[string]string{"m1": "", "m2": "x"}},
		}}}}
	for name, tt := range map[string]struct {
		master string
		change func(*host, *adminapi.Status)
		v      *adminapi.Verification
		want   string
	}{
		"a key that others have": {"", nil, lacking, "fail data keys: web2 is missing on this node"},
		"catching up": {"", func(_ *host, st *adminapi.Status) {
			st.Node.Sync = []adminapi.SyncPart{{Part: "keys", State: "syncing", Done: 1, Total: 2, Unit: "items"}}
		}, nil, "still catching up"},
		"returns": {"", func(_ *host, st *adminapi.Status) {
			st.Node.Returns = &adminapi.Returns{Journals: []adminapi.Journal{{Name: "python",
				Waiting: []adminapi.Waiting{{Consumer: "master", Records: 3}}}}}
		}, nil, "3 returns wait for master"},
		"no majority": {"", func(_ *host, st *adminapi.Status) {
			st.Members, st.Cluster.Quorum.OK = append(st.Members, adminapi.Member{ID: "m2"}), false
		}, nil, "no majority"},
		"loopback by another file": {"", func(h *host,
			_ *adminapi.Status) {
			h.write("etc/salt/master.d/a.conf", "interface: 127.0.0.1\n")
		}, nil, "remove that line"},
	} {
		t.Run(name, func(t *testing.T) {
			h, st := adopted(t, tt.master), serving()
			if tt.change != nil {
				tt.change(h, st)
			}
			l := h.look(st).Leaving(tt.v)
			if l.Failed() != 1 {
				t.Errorf("%d failed", l.Failed())
			}
			wants(t, text(l.Checks), tt.want)
		})
	}
}

func TestLeaveWithoutDaemon(t *testing.T) {
	h := adopted(t, "")
	h.write("var/lib/saltclusterd/membership.json", "{}")
	l := h.look(nil).Leaving(nil)
	if l.Failed() > 0 || l.Remove == "" {
		t.Errorf("%+v\n%s", l, text(l.Checks))
	}
	wants(t, text(l.Checks), "saltclusterctl remove m1 on another node")
}
