package takeover

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"saltclusterd/integration/require"
)

func TestRehearse(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer ln.Close()
	addr := ln.Addr().String()
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	socket := filepath.Join(t.TempDir(), "s")
	refused := errors.New("refused")
	for name, c := range map[string]struct {
		wanted, had []Listening
		want        string
	}{
		"free":             {[]Listening{{"tcp", "127.0.0.1:0", "p"}, {"udp", "127.0.0.1:0", "p"}}, nil, ""},
		"in use":           {[]Listening{{"tcp", addr, "publish port"}}, nil, "publish port: listen tcp " + addr},
		"had":              {[]Listening{{"tcp", addr, "p"}}, []Listening{{"tcp", addr, ""}}, ""},
		"had more widely":  {[]Listening{{"tcp", addr, "p"}}, []Listening{{"tcp", "0.0.0.0:" + port, ""}}, ""},
		"had for packets":  {[]Listening{{"tcp", addr, "p"}}, []Listening{{"udp", addr, ""}}, "address already in use"},
		"admin socket":     {[]Listening{{"unix", socket, "p"}}, nil, refused.Error()},
		"had admin socket": {[]Listening{{"unix", socket, "p"}}, []Listening{{"unix", socket, ""}}, ""},
	} {
		err := Rehearse(t.Context(), c.wanted, c.had, func(context.Context) error { return refused })
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}

// FuzzParseListening checks that a list means the same when it is written and parsed again, and that a unix socket
// excludes itself.
func FuzzParseListening(f *testing.F) {
	for _, text := range []string{
		`[]`, `null`, `{}`, `[{"Network":"tcp","Addr":"127.0.0.1:4510"},{"Network":"udp","Addr":"[::]:4510"}]`,
		`[{"Network":"unix","Addr":"/run/saltclusterd/admin.sock"}]`, `[{"Network":"tcp","Addr":"no address"}]`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		had, err := ParseListening(text)
		if err != nil {
			return
		}
		raw, err := json.Marshal(had)
		require.NoError(t, err)
		again, err := ParseListening(string(raw))
		if err != nil || !slices.Equal(again, had) {
			t.Fatalf("%q means %v, and then %v, %v", text, had, again, err)
		}
		for _, l := range had {
			if !slices.ContainsFunc(had, l.excludes) && l.Network == "unix" {
				t.Errorf("%v does not exclude itself", l)
			}
		}
	})
}
