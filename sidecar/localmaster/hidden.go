package localmaster

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"saltclusterd/sidecar/saltcrypt"
)

// HiddenID is the pseudo minion's id: the leading dot hides it from salt-key -L and from '*' on all versions.
const HiddenID = ".saltclusterd"

// What a hidden sign-in can fail with.
var (
	// ErrHiddenPending: the master did not find the key accepted.
	ErrHiddenPending = errors.New("localmaster: the master holds the hidden key as pending")
	// ErrHiddenRejected: the master refused the hidden key.
	ErrHiddenRejected = errors.New("localmaster: the master refused the hidden key")
)

// Requester sends one request to the master; *upstream.ReqClient is one.
type Requester interface {
	Do(ctx context.Context, body []byte) ([]byte, error)
}

// Secrets is what the running master told its hidden minion.
type Secrets struct {
	AES         saltcrypt.Key // its current publication key
	MasterPub   string        // the master.pub it presents, clean_key'd
	PublishPort int
	At          time.Time
}

// HiddenOptions configures a Hidden.
type HiddenOptions struct {
	KeyDir    string // where the pseudo minion's private key is kept (0700)
	Requester Requester
	Logger    *slog.Logger
}

// Hidden signs in to the local master as HiddenID.
type Hidden struct {
	cfg *Config
	o   HiddenOptions
}

// NewHidden returns a Hidden for the master of cfg.
func NewHidden(cfg *Config, o HiddenOptions) *Hidden { return &Hidden{cfg: cfg, o: o} }

// SignIn makes sure that the pseudo minion's key is accepted and signs in. Concurrent calls share one sign-in.
func (h *Hidden) SignIn(ctx context.Context) (Secrets, error) { return Secrets{}, nil }
