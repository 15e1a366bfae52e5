//go:build integration

package scenario

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/tinylib/msgp/msgp"

	"saltclusterd/integration/lab"
	"saltclusterd/integration/lab/labtest"
	"saltclusterd/sidecar/eventbus"
	"saltclusterd/sidecar/localmaster"
	"saltclusterd/sidecar/saltwire"
)

// authEvent is one salt/auth event as a reactor on that master sees it.
type authEvent struct {
	on, id, act, pub string
	grains           string // autosign_grains, printed
	result           bool
	at               time.Time // when it was heard
}

// listeners hear the event buses of stock masters, across their restarts.
type listeners struct {
	buses map[string]*eventbus.Bus

	mu   sync.Mutex
	tags map[string]int // "<host> <tag>" of everything else
	auth []authEvent
}

func listen(t *testing.T, masters ...*lab.Master) *listeners {
	t.Helper()
	l := &listeners{buses: map[string]*eventbus.Bus{}, tags: map[string]int{}}
	for _, m := range masters {
		version, err := localmaster.ParseVersion("salt-master " + m.Version)
		labtest.Must(t, err)
		cfg, err := localmaster.LoadConfig(filepath.Join(m.ConfigDir, "master"), version)
		labtest.Must(t, err)
		b, name := eventbus.New(cfg, eventbus.Options{}), m.Host().Name
		labtest.Must(t, b.Open(t.Context()))
		t.Cleanup(func() { _ = b.Close() })
		b.Subscribe(func(tag string, data []byte) { l.heard(name, tag, data) })
		l.buses[name] = b
	}
	return l
}

func (l *listeners) heard(on, tag string, data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if tag != "salt/auth" {
		l.tags[on+" "+tag]++
		return
	}
	e := authEvent{on: on, at: time.Now()}
	_ = saltwire.WalkMap(data, func(key, value []byte) error {
		text, _ := saltwire.Bytes(value)
		switch string(key) {
		case "id":
			e.id = string(text)
		case "act":
			e.act = string(text)
		case "pub":
			e.pub = string(text)
		case "autosign_grains":
			grains, _, err := msgp.ReadIntfBytes(value)
			e.grains = fmt.Sprint(grains, err)
		case "result":
			e.result, _ = saltwire.Bool(value)
		}
		return nil
	})
	l.auth = append(l.auth, e)
}

// signIns returns the salt/auth events of an id, on all masters.
func (l *listeners) signIns(id string) (all []authEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.auth {
		if e.id == id {
			all = append(all, e)
		}
	}
	return all
}

func (l *listeners) count(on, tag string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tags[on+" "+tag]
}

// fence returns when every bus has carried an event that was fired now: what a master fired before has been heard.
func (l *listeners) fence(ctx context.Context, t *testing.T) {
	t.Helper()
	for name, b := range l.buses {
		tag := fmt.Sprintf("lab/fence/%s/%d", name, time.Now().UnixNano())
		labtest.Must(t, lab.Eventually(ctx, time.Minute, "the event bus of "+name, func(ctx context.Context) error {
			if l.count(name, tag) > 0 {
				return nil
			}
			if err := b.Fire(ctx, tag, map[string]any{}); err != nil { // again and again: a bus that restarts loses some
				return err
			}
			return fmt.Errorf("event %s not heard", tag)
		}))
	}
}
