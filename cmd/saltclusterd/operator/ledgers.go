package operator

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"saltclusterd/cmd/saltclusterd/peerrpc"
	"saltclusterd/fsync/ledger"
	"saltclusterd/gossip/node"
	"saltclusterd/sidecar/adminapi"
)

// LedgerPath is where a node answers what it holds of a section.
const LedgerPath = "/v1/ledger"

// ledgerTimeout is how long the nodes may take to read what they hold of a section.
const ledgerTimeout = time.Minute

// Section is one kind of things that all nodes should hold.
type Section struct {
	Name  string
	Holds func() (ledger.Ledger, error) // by this node
	// Decided returns what the cluster has decided, as this node knows it; nil: the nodes are compared with each other.
	Decided func() ledger.Ledger
	Rules   ledger.Rules
}

// LedgersConfig is what Ledgers works with.
type LedgersConfig struct {
	Self     node.ID
	Others   func() []node.ID // the other members that have a master
	Client   peerrpc.Client
	Sections []Section // in the order in which they are shown
}

// Ledgers compares what the nodes hold. A witness has none.
type Ledgers struct{ cfg LedgersConfig }

// NewLedgers returns Ledgers.
func NewLedgers(cfg LedgersConfig) *Ledgers { return &Ledgers{cfg} }

// Handle answers other members.
func (l *Ledgers) Handle(mux *peerrpc.Mux) {
	mux.Handle("GET "+LedgerPath, http.HandlerFunc(l.answerLedger))
}

// answerLedger answers a peer's ask.
func (l *Ledgers) answerLedger(w http.ResponseWriter, r *http.Request) {
	for _, s := range l.cfg.Sections {
		if s.Name != r.URL.Query().Get("section") {
			continue
		}
		held, err := s.Holds()
		if err == nil {
			var raw []byte
			if raw, err = held.Encode(); err == nil {
				_, _ = w.Write(raw)
				return
			}
		}
		http.Error(w, fmt.Sprintf("%s: %v", s.Name, err), http.StatusInternalServerError)
		return
	}
	http.Error(w, "no such section", http.StatusNotFound)
}

// collectLedgers asks all members that have a master for what they hold of a section.
func (l *Ledgers) collectLedgers(ctx context.Context, s Section) answers {
	ctx, cancel := context.WithTimeout(ctx, ledgerTimeout)
	defer cancel()
	decided := ledger.Ledger{}
	if s.Decided != nil {
		decided = s.Decided()
	}
	got := peerrpc.AskAll(ctx, append(l.cfg.Others(), l.cfg.Self),
		func(ctx context.Context, id node.ID) (ledger.Ledger, error) { return l.askLedger(ctx, id, s) })
	a := answers{ledgers: map[string]ledger.Ledger{}, missing: map[string]string{}}
	if s.Decided != nil {
		a.ledgers[adminapi.Decided] = decided
	}
	for id, held := range got.Of {
		a.ledgers[string(id)] = held
	}
	for id, err := range got.Failed {
		a.missing[string(id)] = peerrpc.Reason(err)
	}
	return a
}

func (l *Ledgers) askLedger(ctx context.Context, id node.ID, s Section) (ledger.Ledger, error) {
	if id == l.cfg.Self {
		return s.Holds()
	}
	path := LedgerPath + "?section=" + url.QueryEscape(s.Name)
	raw, err := l.cfg.Client.Do(ctx, http.MethodGet, id, path, nil, ledger.MaxBody)
	if err != nil {
		if peerrpc.IsNotFound(err) {
			return ledger.Ledger{}, errors.New("its saltclusterd is an older version")
		}
		return ledger.Ledger{}, err
	}
	return ledger.Decode(raw)
}
