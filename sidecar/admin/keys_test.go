package admin

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"saltclusterd/sidecar/adminapi"
)

// deciding is a backend that knows keys, log levels and events.
type deciding struct {
	fakeBackend
	asked adminapi.KeyQuery
}

func (d *deciding) Keys(_ context.Context, q adminapi.KeyQuery) (adminapi.Keys, error) {
	d.asked = q
	return adminapi.Keys{Keys: []adminapi.MinionKey{{ID: "web1"}}}, nil
}

func (d *deciding) DecideKeys(_ context.Context, r adminapi.DecideKeysRequest) (adminapi.DecidedKeys, error) {
	return adminapi.DecidedKeys{Rev: uint64(len(r.IDs))}, nil
}

func (d *deciding) LogLevel(context.Context) (adminapi.LogLevel, error) {
	return adminapi.LogLevel{Level: "info"}, nil
}

func (d *deciding) SetLogLevel(_ context.Context, r adminapi.SetLogLevelRequest) (adminapi.LogLevel, error) {
	return adminapi.LogLevel{Level: r.Level}, nil
}

func (d *deciding) HandledEvents(_ context.Context, minion string, limit int) (adminapi.HandledEvents, error) {
	return adminapi.HandledEvents{From: minion, Events: make([]adminapi.HandledEvent, limit)}, nil
}

func (d *deciding) ExplainEvent(_ context.Context, minion, tag string) (adminapi.EventExplanation, error) {
	return adminapi.EventExplanation{Minion: minion, Tag: tag}, nil
}

func TestKeysLogsAndEvents(t *testing.T) {
	b := &deciding{}
	_, c := start(t, b)
	ctx := t.Context()
	q := adminapi.KeyQuery{State: "pending", Match: "web*&id=x", After: "web/1&", History: true, Limit: 7}
	if k, err := c.Keys(ctx, q); err != nil || len(k.Keys) != 1 || b.asked != q {
		t.Errorf("%+v, %v; asked %+v", k, err, b.asked)
	}
	if _, err := c.Keys(ctx, adminapi.KeyQuery{}); err != nil || b.asked.Limit != maxKeys {
		t.Errorf("%v; asked %+v", err, b.asked)
	}
	if _, err := c.Keys(ctx, adminapi.KeyQuery{Limit: -1}); adminapi.CodeOf(err) != adminapi.CodeInvalid {
		t.Errorf("a negative limit: %v", err)
	}
	many := strings.Split(strings.Repeat("x ", adminapi.MaxDecided+1), " ")
	for _, tt := range []struct {
		r    adminapi.DecideKeysRequest
		code adminapi.Code
	}{
		{adminapi.DecideKeysRequest{State: adminapi.KeyAccepted, IDs: []string{"a", "b"}}, ""},
		{adminapi.DecideKeysRequest{State: adminapi.KeyPending, IDs: []string{"a"}}, adminapi.CodeInvalid},
		{adminapi.DecideKeysRequest{State: adminapi.KeyDeleted}, adminapi.CodeInvalid},
		{adminapi.DecideKeysRequest{State: adminapi.KeyDeleted, IDs: many}, adminapi.CodeInvalid},
	} {
		if _, err := c.DecideKeys(ctx, tt.r); adminapi.CodeOf(err) != tt.code {
			t.Errorf("%s of %d: %v", tt.r.State, len(tt.r.IDs), err)
		}
	}
	if l, err := c.SetLogLevel(ctx, adminapi.SetLogLevelRequest{Level: "debug", For: time.Hour}); err != nil ||
		l.Level != "debug" {
		t.Errorf("%+v, %v", l, err)
	}
	if _, err := c.SetLogLevel(ctx,
		adminapi.SetLogLevelRequest{For: 1000 * time.Hour}); adminapi.CodeOf(err) != adminapi.CodeInvalid {
		t.Errorf("too long: %v", err)
	}
	if x, err := c.ExplainEvent(ctx, "web 1", "a/b&c"); err != nil || x.Minion != "web 1" || x.Tag != "a/b&c" {
		t.Errorf("%+v, %v", x, err)
	}
	if x, err := c.HandledEvents(ctx, "web 1", 3); err != nil || x.From != "web 1" || len(x.Events) != 3 {
		t.Errorf("%+v, %v", x, err)
	}
	if x, err := c.HandledEvents(ctx, "", 7); err != nil || x.From != "" || len(x.Events) != 7 {
		t.Errorf("%+v, %v", x, err)
	}
	if _, err := c.HandledEvents(ctx, "", 0); adminapi.CodeOf(err) != adminapi.CodeInvalid {
		t.Errorf("no events: %v", err)
	}
	if _, err := c.ExplainEvent(ctx, "", "a"); adminapi.CodeOf(err) != adminapi.CodeInvalid {
		t.Errorf("no minion: %v", err)
	}
}

// TestOldDaemon: a verb that the daemon does not know says so.
func TestOldDaemon(t *testing.T) {
	_, c := start(t, &fakeBackend{})
	if _, err := c.Keys(t.Context(), adminapi.KeyQuery{}); adminapi.CodeOf(err) != adminapi.CodeNotFound ||
		!strings.Contains(adminapi.HintOf(err), "older") {
		t.Errorf("%v (%s)", err, adminapi.HintOf(err))
	}
}

func (d *deciding) KeysOf(_ context.Context, r adminapi.KeysOfRequest) (adminapi.KeysOf, error) {
	return adminapi.KeysOf{Rev: uint64(len(r.IDs)), Keys: []adminapi.MinionKey{}}, nil
}

func (d *deciding) PutKeys(_ context.Context, r adminapi.PutKeysRequest) (adminapi.DecidedKeys, error) {
	return adminapi.DecidedKeys{Rev: r.Seen, Keys: []adminapi.DecidedKey{{ID: r.Keys[0].ID}}}, nil
}

func TestDecideKeys_FromAnotherNode(t *testing.T) {
	_, c := start(t, &deciding{})
	ctx := t.Context()
	for n, code := range map[int]adminapi.Code{0: adminapi.CodeInvalid, 1: "", adminapi.MaxKeysOf: "",
		adminapi.MaxKeysOf + 1: adminapi.CodeInvalid} {
		got, err := c.KeysOf(ctx, adminapi.KeysOfRequest{IDs: slices.Repeat([]string{strings.Repeat("x", 255)}, n)})
		if adminapi.CodeOf(err) != code || err == nil && got.Rev != uint64(n) {
			t.Errorf("%d ids: %+v, %v", n, got, err)
		}
	}
	pub := strings.Repeat("k", 460)
	for name, tt := range map[string]struct {
		keys []adminapi.PutKey
		code adminapi.Code
	}{
		"one": {[]adminapi.PutKey{{ID: "web1", State: adminapi.KeyAccepted, Pub: pub}}, ""},
		"as many as may be": {slices.Repeat([]adminapi.PutKey{{ID: strings.Repeat("x", 255), State: adminapi.KeyPending,
			Pub: pub}}, adminapi.MaxPut), ""},
		"the longest key": {[]adminapi.PutKey{{ID: "web1", State: adminapi.KeyRejected, Pub: pub,
			Denied: strings.Repeat("k", adminapi.MaxPutBytes)}}, ""},
		"only denied": {[]adminapi.PutKey{{ID: "web1", Denied: pub}}, ""},
		"none":        {nil, adminapi.CodeInvalid},
		"too many":    {make([]adminapi.PutKey, adminapi.MaxPut+1), adminapi.CodeInvalid},
		"nothing":     {[]adminapi.PutKey{{ID: "web1"}}, adminapi.CodeInvalid},
		"deleted":     {[]adminapi.PutKey{{ID: "web1", State: adminapi.KeyDeleted}}, adminapi.CodeInvalid},
	} {
		if got, err := c.PutKeys(ctx, adminapi.PutKeysRequest{From: "m2", Seen: 9,
			Keys: tt.keys}); adminapi.CodeOf(err) != tt.code || err == nil && got.Rev != 9 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
