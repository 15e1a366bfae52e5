package health

import "context"

// Level grades a Result.
type Level int

// Levels from harmless to serious. Warn never makes a node unready.
const (
	OK Level = iota
	Warn
	Fail
)

// String returns ok, warn or fail.
func (l Level) String() string {
	switch l {
	case OK:
		return "ok"
	case Warn:
		return "warn"
	default:
		return "fail"
	}
}

// Result is what a check found. Reason is a sentence, Hint says what to do;
// both are for operators only.
type Result struct {
	Level  Level
	Reason string
	Hint   string
	// Maintenance marks a failure whose end is not waited for: load balancers are told to leave the node alone.
	Maintenance bool
}

// Scope says which answers a check takes part in.
type Scope uint8

// Scopes, to be or-ed. ScopeServe is a check without which minions cannot be
// served at all.
const (
	ScopeLive  Scope = 1 << iota // /livez
	ScopeReady                   // /readyz
	ScopePub                     // /pub: may minions subscribe here
	ScopeReq                     // /req: may minions send requests here
	ScopeAPI                     // /api, with those of ScopeReq: may clients of the salt-api beside it come here

	ScopeServe = ScopeReady | ScopePub | ScopeReq
)

// CheckFunc looks at one thing. It must return when ctx ends.
type CheckFunc func(ctx context.Context) Result
