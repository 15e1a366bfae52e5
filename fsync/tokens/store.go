package tokens

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"saltclusterd/fsync/replica"
)

// Store carries tokens between the local master and the other members. Create it with New.
type Store struct {
	*replica.Replica[fingerprint, *peer, message]
	cfg     Config
	disk    disk
	log     *slog.Logger
	metrics *metrics

	mu    sync.Mutex // guards what follows, and the files while they are read or written
	table table
	gone  map[fingerprint]time.Time // live tokens whose files are missing, since when
	full  bool                      // tokens were turned away, and it was said
	whole bool                      // a scan has read the whole directory
}

// New checks the configuration; it touches nothing but the link that the directory may be.
func New(cfg Config) (*Store, error) {
	if cfg.Master.CacheDir == "" {
		return nil, errors.New("tokens: cachedir must be set")
	}
	cfg.Timing = cfg.Timing.withDefaults()
	s := &Store{
		disk:  newDisk(cfg.Master),
		table: table{entries: map[fingerprint]entry{}}, gone: map[fingerprint]time.Time{},
	}
	s.metrics = newMetrics(cfg.Registerer, s.countTokens)
	var err error
	s.Replica, err = replica.New(&cfg.Config, replica.Spec[fingerprint, *peer, message]{
		Name: "tokens", Off: cfg.Master.reasonOff(), OffLevel: slog.LevelWarn, Pace: pace,
		Table: replica.Table{File: tableName, Load: s.loadTable, Encode: s.encodeTable,
			Lost: "tokens revoked while saltclusterd was stopped are not known"},
		Pull: replica.Puller[fingerprint]{Offered: s.askOffer, Fetch: s.fetchPage, Page: maxNews, AtATime: 1},
		Path: Path, MaxBody: MaxBody, Decode: decodeMessage, Take: s.handleMessage,
		NewSender: func(p *replica.Peer[fingerprint]) *peer { return &peer{p, s} }, Limit: maxTokens, Batch: maxNews,
		Tasks:    []func(context.Context){s.keepScanning},
		Failures: s.metrics.failures, Fault: "tokens not handled",
	})
	s.cfg, s.log = cfg, cfg.Logger
	return s, err
}

// Status is what an operator may want to know.
type Status struct {
	Off           string // why nothing is replicated; empty when it is
	Live, Revoked int
	Peers         []replica.PeerStatus
}

// Status returns the present state.
func (s *Store) Status() Status {
	st := Status{Off: s.Off(), Peers: s.Peers()}
	st.Live, st.Revoked = s.countTokens()
	return st
}

// errNotYet says that this node has not read its own tokens yet, or does not know the sender as a member.
var errNotYet = errors.New("starting")

// mayAnswer returns errNotYet when peers are not to be answered. s.mu is held.
func (s *Store) mayAnswer() error {
	if !s.whole || s.Closed() != nil {
		return errNotYet
	}
	return nil
}

func (s *Store) countTokens() (live, revoked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.table.entries {
		if e.revoked {
			revoked++
		} else {
			live++
		}
	}
	return live, revoked
}
