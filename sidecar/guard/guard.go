package guard

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"saltclusterd/sidecar/router"
	"saltclusterd/sidecar/saltcrypt"
	"saltclusterd/sidecar/saltwire"
	"saltclusterd/sidecar/wall"
)

const (
	// DefaultMinVersion is minimum_auth_version of all supported masters.
	DefaultMinVersion = 3
	// nonceLength is that of uuid4().hex, and what Crypticle.loads cuts off an answer.
	nonceLength = 32
	// DefaultTokens is how many verified tokens are remembered unless told otherwise; one takes about 400 bytes.
	DefaultTokens = 50_000
)

// Config says how strict a Guard is. The zero value is what a stock master does by default.
type Config struct {
	MinVersion int                  // minimum_auth_version; zero: DefaultMinVersion
	TTL        func() time.Duration // request_server_ttl; nil or zero: requests do not age
	// AllowClear names the networks that may use an administrative clear command (publish, runner, wheel, mk_token,
	// get_token). Others, and all without an entry, are refused.
	AllowClear map[string][]netip.Prefix
	Wall       *wall.Wall // rules for what passes here, and counts by rule; nil: none
	// Known says that a text is that of a usable public key, because it was looked at before; nil: nothing is known.
	Known      func(pub string) bool
	MaxTokens  int              // verified tokens remembered; zero: DefaultTokens
	Now        func() time.Time // nil: time.Now
	Logger     *slog.Logger     // nil: slog.Default
	Registerer prometheus.Registerer
}

// Guard checks requests. Safe for concurrent use; it holds no goroutines.
type Guard struct {
	cfg     Config
	tokens  *tokenCache
	log     *limiter
	metrics *metrics
}

// New returns a Guard.
func New(cfg Config) *Guard {
	if cfg.MinVersion == 0 {
		cfg.MinVersion = DefaultMinVersion
	}
	if cfg.MaxTokens <= 0 {
		cfg.MaxTokens = DefaultTokens
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.TTL == nil {
		cfg.TTL = func() time.Duration { return 0 }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return &Guard{
		cfg:     cfg,
		tokens:  newTokenCache(cfg.MaxTokens),
		log:     newLimiter(cfg.Now),
		metrics: newMetrics(cfg.Registerer),
	}
}

// Malformed refuses what sidecar/saltwire could not parse.
func (g *Guard) Malformed(err error, remote netip.AddrPort) *Refusal {
	reason, answer := parseReason(err)
	g.reportRefusal(reason, "", "", remote)
	return &Refusal{Reason: reason, Answer: answer}
}

// Refuse refuses a request for a reason found elsewhere. Its sender, who may be an honest minion, is told to sign in
// again; when no master can take the request, it is told nothing and will retry on its own.
func (g *Guard) Refuse(reason Reason, id string, remote netip.AddrPort) *Refusal {
	return g.refuseRequest(reason, id, "", remote)
}

func (g *Guard) refuseRequest(reason Reason, id, cmd string, remote netip.AddrPort) *Refusal {
	g.reportRefusal(reason, id, cmd, remote)
	if reason == ReasonNotRouted {
		return &Refusal{Reason: reason}
	}
	return &Refusal{Reason: reason, Answer: saltwire.BadLoad()}
}

// CheckEnvelope checks what can be seen without a key.
func (g *Guard) CheckEnvelope(env saltwire.Envelope, remote netip.AddrPort) *Refusal {
	switch {
	case env.Enc != saltwire.EncClear && env.Enc != saltwire.EncAES:
		g.reportRefusal(Reason("enc_is_neither_clear_nor_aes"), "", "", remote)
		return &Refusal{Reason: "enc_is_neither_clear_nor_aes"}
	case env.Version < g.cfg.MinVersion:
		return g.refuseRequest(ReasonVersion, env.ID, "", remote)
	case env.Enc == saltwire.EncAES && (env.ID != "" || env.Version >= tokenVersion) && saltwire.ValidID(env.ID) != nil:
		return g.refuseRequest(ReasonInvalidID, env.ID, "", remote)
	}
	return nil
}

// CheckClear checks a command in clear other than _auth.
func (g *Guard) CheckClear(cmd string, remote netip.AddrPort) *Refusal {
	c, known := router.Lookup(router.Clear, cmd)
	if !known {
		r := g.refuseRequest(ReasonUnknownCommand, "", cmd, remote)
		r.Answer = []byte{0x80} // {} as a stock master answers (master.py:MWorker._handle_clear)
		return r
	}
	if c.Route != router.Admin {
		return nil
	}
	addr := remote.Addr().Unmap()
	for _, network := range g.cfg.AllowClear[cmd] {
		if network.Contains(addr) {
			return nil
		}
	}
	if !g.cfg.Wall.Enforces(wall.ClearCommands, "") {
		if g.cfg.Wall.Mode(wall.ClearCommands) == wall.Log {
			g.logLimited(foundNotRefused, ReasonAdminCommand, "", cmd, remote)
		}
		return nil
	}
	return g.refuseRequest(ReasonAdminCommand, "", cmd, remote)
}

// CheckAuth checks what ParseAuth leaves open: a good id and a key that OpenSSL can load (docs/dev/protocol.md §2.2).
func (g *Guard) CheckAuth(auth saltwire.AuthRequest, remote netip.AddrPort) *Refusal {
	if saltwire.ValidID(auth.ID) != nil {
		return g.refuseRequest(ReasonInvalidID, auth.ID, "_auth", remote)
	}
	if g.cfg.Known != nil && g.cfg.Known(auth.Pub) {
		return nil
	}
	if _, err := saltcrypt.ParsePublicKey(auth.Pub); err != nil {
		return g.refuseRequest(ReasonUnusablePub, auth.ID, "_auth", remote)
	}
	return nil
}
