package keyset

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/saltcrypt"
)

// pub makes something that looks like the public key called name.
func pub(name string) string {
	return "-----BEGIN PUBLIC KEY-----\n" + base64.StdEncoding.EncodeToString([]byte("key "+name)) +
		"\n-----END PUBLIC KEY-----"
}

func print(name string) string { return saltcrypt.Fingerprint(pub(name)) }

// set makes the set called name out of words like "accepted A".
func set(name, id string, claims ...string) Set {
	s := Set{Name: name}
	for _, c := range claims {
		state, key, _ := strings.Cut(c, " ")
		s.Keys = append(s.Keys, Key{ID: id, State: state, Pub: pub(key)})
	}
	return s
}

// known makes what the cluster has out of the same words.
func known(claims ...string) Known {
	k := Known{}
	for _, c := range claims {
		k.Rev = 7
		state, key, _ := strings.Cut(c, " ")
		switch state {
		case adminapi.KeyDenied:
			k.Denied = print(key)
		case adminapi.KeyDeleted:
			k.State = state
		default:
			k.State, k.Fingerprint = state, print(key)
		}
	}
	return k
}

// named undoes pub.
func named(text string) string {
	for _, name := range []string{"A", "B", "C", "D"} {
		if text == pub(name) {
			return name
		}
	}
	return text
}

func putText(puts []adminapi.PutKey) string {
	var parts []string
	for _, p := range puts {
		if p.State != "" {
			parts = append(parts, p.State+" "+named(p.Pub))
		}
		if p.Denied != "" {
			parts = append(parts, "denied "+named(p.Denied))
		}
	}
	return strings.Join(parts, ", ")
}

func TestMerge(t *testing.T) {
	type claims []string
	for _, tt := range []struct {
		cluster, m2, m3 claims
		kind            Kind
		puts            string // without a choice
		take            map[string]string
	}{
		{claims{"accepted A"}, claims{"accepted A"}, nil, Same, "", nil},
		{claims{"accepted A"}, claims{"pending A"}, nil, Same, "", nil},
		{nil, claims{"accepted A"}, nil, New, "accepted A", nil},
		{nil, claims{"pending A"}, claims{"accepted A"}, New, "accepted A", nil},
		{nil, claims{"rejected A"}, claims{"pending A"}, New, "rejected A", nil},
		{nil, claims{"pending A"}, claims{"pending A"}, New, "pending A", nil},
		{claims{"pending A"}, claims{"accepted A"}, nil, Decided, "accepted A", nil},
		{claims{"pending A"}, claims{"rejected A"}, claims{"pending A"}, Decided, "rejected A", nil},

		{
			claims{"accepted A"}, claims{"accepted B"}, nil, Conflict, "",
			map[string]string{"cluster": "denied B", "m2": "accepted B", "m3": "error"},
		},
		{
			claims{"accepted A"}, claims{"pending B"}, nil, Conflict, "",
			map[string]string{"cluster": "denied B", "m2": "pending B"},
		},
		{
			claims{"accepted A"}, claims{"rejected A"}, nil, Conflict, "",
			map[string]string{"cluster": "", "m2": "rejected A"},
		},
		{
			claims{"pending A"}, claims{"rejected A"}, claims{"accepted A"}, Conflict, "",
			map[string]string{"cluster": "", "m2": "rejected A", "m3": "accepted A"},
		},
		{
			nil, claims{"accepted A"}, claims{"accepted B"}, Conflict, "",
			map[string]string{"m2": "accepted A, denied B", "m3": "accepted B, denied A", "cluster": "error"},
		},
		{
			claims{"deleted"}, claims{"accepted A"}, nil, Conflict, "",
			map[string]string{"cluster": "", "m2": "accepted A"},
		},
		{
			claims{"accepted A"}, claims{"accepted B"}, claims{"accepted C"}, Conflict, "",
			map[string]string{"cluster": "denied B", "m3": "accepted C"},
		},

		// What was decided before is not asked again.
		{claims{"accepted A", "denied B"}, claims{"accepted B"}, nil, Same, "", nil},
		{claims{"accepted A", "denied B"}, claims{"accepted B"}, claims{"accepted C"}, Conflict, "",
			map[string]string{"cluster": ""}},
		{claims{"denied A"}, claims{"accepted A"}, nil, New, "accepted A", nil},

		// What a master has denied is denied in the cluster, unless that is the key that counts or the cluster has denied
		// another one.
		{claims{"accepted A"}, claims{"accepted A", "denied B"}, nil, Same, "denied B", nil},
		{claims{"accepted A"}, claims{"accepted A", "denied A"}, nil, Same, "", nil},
		{claims{"accepted A", "denied C"}, claims{"accepted A", "denied B"}, nil, Same, "", nil},
		{nil, claims{"accepted A", "denied B"}, claims{"accepted A", "denied C"}, New, "accepted A, denied B", nil},
		{nil, claims{"denied B"}, nil, "", "", nil},
	} {
		name := fmt.Sprint(tt.cluster, tt.m2, tt.m3)
		base := Base{Name: Cluster, Known: map[string]Known{"web1": known(tt.cluster...)}}
		sets := []Set{set("m2", "web1", tt.m2...), set("m3", "web1", tt.m3...)}
		m := Compare(base, sets)
		if tt.kind == "" {
			if len(m.Rows) != 0 {
				t.Errorf("%s: %+v", name, m.Rows)
			}
			continue
		}
		if len(m.Rows) != 1 || m.Rows[0].Kind != tt.kind || len(m.Open()) != map[bool]int{true: 1}[tt.kind == Conflict] {
			t.Errorf("%s: %+v", name, m.Rows)
			continue
		}
		if got := putText(m.Puts()); got != tt.puts {
			t.Errorf("%s: put %q instead of %q", name, got, tt.puts)
		}
		for _, p := range m.Puts() {
			check.Equal(t, p.BaseRev, base.Known["web1"].Rev, name, "based on")
		}
		for source, want := range tt.take {
			m := Compare(base, sets)
			if err := m.Take("web1", source); err != nil {
				if want != "error" {
					t.Errorf("%s: take %s: %v", name, source, err)
				}
				continue
			}
			if got := putText(m.Puts()); got != want || len(m.Open()) > 0 {
				t.Errorf("%s: take %s: put %q instead of %q", name, source, got, want)
			}
		}
	}
}

// Once the puts are done, nothing of the same files is left to be put or decided.
func TestMergeAgain(t *testing.T) {
	m2 := Set{Name: "m2", Keys: []Key{
		{"a", adminapi.KeyAccepted, pub("A")}, {"b", adminapi.KeyAccepted, pub("B")}, {"c", adminapi.KeyRejected, pub("C")},
		{"c", adminapi.KeyDenied, pub("D")},
	}}
	base := Base{Name: Cluster, Known: map[string]Known{"b": {State: adminapi.KeyAccepted, Fingerprint: print("D"),
		Rev: 3}}}
	for _, choice := range []string{Cluster, "m2"} {
		m := Compare(base, []Set{m2})
		m.Prefer("m9") // has nothing to say
		if len(m.Open()) != 1 {
			t.Fatalf("%+v", m.Open())
		}
		m.Prefer(choice)
		after := Base{Name: Cluster, Known: map[string]Known{"b": base.Known["b"]}}
		for _, p := range m.Puts() {
			k := after.Known[p.ID]
			if p.State != "" {
				if k.Fingerprint != "" {
					k.Denied = k.Fingerprint // as the cluster does
				}
				k.State, k.Fingerprint, k.Rev = p.State, saltcrypt.Fingerprint(p.Pub), k.Rev+1
			}
			if p.Denied != "" {
				k.Denied = saltcrypt.Fingerprint(p.Denied)
			}
			after.Known[p.ID] = k
		}
		again := Compare(after, []Set{m2})
		if len(again.Puts()) > 0 || len(again.Open()) > 0 || again.Counts()[Same] != 3 {
			t.Errorf("%s: %+v, %+v", choice, again.Puts(), again.Rows)
		}
	}
}

func TestSetForACluster(t *testing.T) {
	m1, m2 := set("m1", "web1", "accepted A", "denied B"), set("m2", "web1", "accepted B")
	m := Compare(SetBase(m1), []Set{m2})
	if len(m.Rows) != 1 || m.Rows[0].Kind != Same || m.Rows[0].Claims[0].Source != "m1" {
		t.Errorf("%+v", m.Rows)
	}
}

func TestFile(t *testing.T) {
	s := set("m2", "web1", "accepted A", "denied B")
	s.At, s.Salt, s.Identity = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "3006.28", print("C")
	var b bytes.Buffer
	require.NoError(t, Encode(&b, s))
	if strings.Contains(b.String(), "PRIVATE") || !strings.Contains(b.String(), `"format": "saltclusterd minion keys"`) {
		t.Errorf("%s", &b)
	}
	got, err := Decode(bytes.NewReader(b.Bytes()))
	if err != nil || fmt.Sprint(got) != fmt.Sprint(s) {
		t.Errorf("%v, %v", got, err)
	}
	for what, change := range map[string][2]string{
		"another program":  {"saltclusterd minion keys", "something"},
		"a way out":        {`"web1"`, `"../web1"`},
		"no key":           {"BEGIN PUBLIC KEY", "BEGIN PRIVATE KEY"},
		"no state":         {`"accepted"`, `"trusted"`},
		"a field":          {`"salt"`, `"pepper"`},
		"the cluster":      {`"m2"`, `"cluster"`},
		"no name":          {`"m2"`, `"M 2"`},
		"twice":            {`"denied"`, `"rejected"`},
		"a cut":            {"]\n}", ""},
		"a later version":  {`"v": 1`, `"v": 2`},
		"nothing but text": {b.String(), "web1"},
	} {
		bad := strings.Replace(b.String(), change[0], change[1], 1)
		_, err := Decode(strings.NewReader(bad))
		if bad == b.String() || !errors.Is(err, ErrFormat) && !errors.Is(err, ErrVersion) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestCollect(t *testing.T) {
	pki := t.TempDir()
	for name, text := range map[string]string{"minions/web1": pub("A"), "minions_denied/web1": pub("B"),
		"minions_pre/db1": pub("C"), "minions/odd": "?"} {
		require.NoError(t, os.MkdirAll(filepath.Join(pki, filepath.Dir(name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(pki, name), []byte(text), 0o600))
	}
	keys, odd, err := Collect(t.Context(), pki, nil)
	if err != nil || len(odd) != 1 {
		t.Fatalf("%v, %v", odd, err)
	}
	var got []string
	for _, k := range keys {
		got = append(got, k.ID+" "+k.State+" "+named(k.Pub))
	}
	check.Equal(t, strings.Join(got, ", "), "db1 pending C, web1 accepted A, web1 denied B")
}

// FuzzDecode: a file comes from another host; what it holds becomes names of files on every master.
func FuzzDecode(f *testing.F) {
	var b bytes.Buffer
	require.NoError(f, Encode(&b, set("m2", "web1", "accepted A", "denied B")))
	f.Add(b.Bytes())
	f.Add([]byte(`{"format":"saltclusterd minion keys","v":1,"name":"m2","keys":[{"id":"../x","state":"accepted","pub":""}]}`))
	f.Add([]byte(`{"format":"saltclusterd minion keys","v":2}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, content []byte) {
		s, err := Decode(bytes.NewReader(content))
		if err != nil {
			return
		}
		for _, k := range s.Keys {
			if strings.ContainsAny(k.ID, "/\x00\n") || strings.HasPrefix(k.ID, ".") {
				t.Fatalf("%q is the name of a key file", k.ID)
			}
		}
		var again bytes.Buffer
		require.NoError(t, Encode(&again, s))
		if _, err := Decode(&again); err != nil {
			t.Fatalf("what was read is not read again: %v", err)
		}
		Compare(SetBase(s), []Set{s}).Puts()
	})
}
