package wall

import (
	"fmt"
	"slices"
)

// Mode is what becomes of what a rule finds.
type Mode uint8

// The modes.
const (
	Enforce Mode = iota
	Log
	Off
)

var modeNames = [...]string{Enforce: "enforce", Log: "log", Off: "off"}

// ModeNames are what ParseMode takes.
var ModeNames = []string{"off", "log", "enforce"}

// String is the mode as it is configured.
func (m Mode) String() string {
	if int(m) < len(modeNames) {
		return modeNames[m]
	}
	return "invalid"
}

// ParseMode reads a mode.
func ParseMode(s string) (Mode, error) {
	if at := slices.Index(modeNames[:], s); at >= 0 {
		return Mode(at), nil
	}
	return Enforce, fmt.Errorf("%q is not a mode of a rule", s)
}

// Rule is one of Rules.
type Rule uint8

// The rules, those of sidecar/guard first.
const (
	RequestShape Rule = iota
	IDSyntax
	Identity
	ProtocolVersion
	ClearCommands
	AESCommands
	ProtocolDowngrade
	EventTags
	EventIDs
	ReturnIDs
	ReturnJobs
	SyndicReturns
	JobIDs
	FilePaths
	FileRecv
	PillarExt
	MasterTops
	MineTargets
	Budget
	rules // how many there are
)

// Info is what there is to know about a rule.
type Info struct {
	Name    string
	Default Mode
	Fixed   bool   // always enforced
	Doc     string // what it lets through
	Reasons []string
}

// Rules lists every rule. Reasons are those of sidecar/guard and sidecar/saltwire that count for it.
var Rules = [rules]Info{
	RequestShape: {
		Name: "request_shape", Fixed: true,
		Doc: "a request is exactly one msgpack map of bounded depth and size without duplicate keys, enc is clear or aes, a sign-in has a real RSA key and known algorithms",
		Reasons: []string{
			"truncated_msgpack", "trailing_bytes", "nested_too_deeply", "invalid_msgpack", "not_a_map",
			"map_key_is_not_a_string",
			"duplicate_map_key", "wrong_type_of_a_field", "missing_field", "field_too_long", "enc_is_neither_clear_nor_aes",
			"version_is_not_a_small_integer", "not_the_expected_command", "bad_enc_algo", "bad_sig_algo",
			"field_is_not_printable_text", "too_many_map_entries", "malformed", "unusable_pub", "bad_nonce",
		},
	},
	IDSyntax: {
		Name: "id_syntax", Fixed: true, Reasons: []string{"invalid_id", "invalid_minion_id"},
		Doc: "an id is 1 to 255 bytes of UTF-8 without slash, backslash and control characters, and does not begin with a dot",
	},
	Identity: {
		Name: "identity", Fixed: true,
		Reasons: []string{"id_mismatch", "no_token", "bad_token", "no_timestamp", "expired", "not_authentic",
			"key_not_accepted", "key_unusable", "relayed_clear"},
		Doc: "the id has an accepted key, the request decrypts with its session key, the ids inside and outside are the same, its token verifies, it is not older than the master's request_server_ttl; revoke_auth only by an id that is a plain name",
	},
	ProtocolVersion: {
		Name: "protocol_version", Fixed: true, Reasons: []string{"version_too_old"},
		Doc: "the payload version is at least request_minimum_version",
	},
	ClearCommands: {
		Name: "clear_commands", Reasons: []string{"unknown_command", "admin_command"},
		Doc: "unencrypted requests are only sign-ins and ping; publish, runner, wheel and tokens only from allow_clear_commands; commands that do not exist in Salt never pass",
	},
	AESCommands: {
		Name: "aes_commands", Fixed: true,
		Doc: "encrypted requests are only the commands that a supported Salt offers to minions; others are answered as a stock master answers them",
	},
	ProtocolDowngrade: {
		Name: "protocol_downgrade",
		Doc:  "no sign-in or request with an older payload version than the key's owner has already used; matters where request_minimum_version is below 3",
	},
	EventTags: {
		Name: "event_tags",
		Doc:  "no event with a tag of masters or clusters, sent on its own, in a list or after a pretag, and none marked as a peer's; such events are removed from lists",
	},
	EventIDs: {
		Name: "event_ids",
		Doc:  "no event salt/minion/ID/..., salt/beacon/ID/... or salt/syndic/ID/... in the name of another minion, by its tag or the id in its data",
	},
	ReturnIDs: {
		Name: "return_ids",
		Doc:  "returns, and events of a job, only under the sender's own id, or that of a resource that is neither a minion nor a path; names of resources are not paths",
	},
	ReturnJobs: {
		Name: "return_jobs",
		Doc:  "returns only for jobs that were published; returns for jobs that cannot be checked pass",
	},
	SyndicReturns: {
		Name: "syndic_returns",
		Doc:  "returns for others (_syndic_return) and lists of a job's minions only where the master sets order_masters, and never for a minion of the cluster itself",
	},
	JobIDs: {
		Name: "job_ids",
		Doc:  "a job id is not a path, a list or a map",
	},
	FilePaths: {
		Name: "file_paths",
		Doc:  "paths of file requests are relative and stay inside the roots, names of environments are not paths that lead out of them, no backend is left out",
	},
	FileRecv: {
		Name: "file_recv",
		Doc:  "files are pushed (cp.push) only to a master with file_recv: True, and only below the minion's own directory",
	},
	PillarExt: {
		Name: "pillar_ext",
		Doc:  "on-demand external pillars only by the names in the master's own on_demand_ext_pillar, not by Salt's default; others are removed",
	},
	MasterTops: {
		Name: "master_tops",
		Doc:  "the classes of a minion (master_tops) only for itself, not under the id of another minion",
	},
	MineTargets: {
		Name: "mine_targets", Default: Log, // stock masters answer it; a refused minion would find no minions and act on that
		Doc: "pillar targets of mine.get match whole values only, as Salt's guide to mine.get says",
	},
	Budget: {
		Name: "budget",
		Doc:  "a minion's requests and their answers stay within minion_request_rate, minion_request_bytes and minion_answer_bytes; requests a little above them wait, others are not answered and minions repeat them; no minion publishes with a timeout of more than five minutes, or registers more than 20,000 resources",
	},
}

// String is the rule's name.
func (r Rule) String() string {
	if r < rules {
		return Rules[r].Name
	}
	return "invalid"
}

// Names lists the rules that can be configured.
func Names() (names []string) {
	for _, r := range Rules {
		if !r.Fixed {
			names = append(names, r.Name)
		}
	}
	return names
}

// ParseRule finds a rule that can be configured by its name.
func ParseRule(name string) (Rule, error) {
	for i, r := range Rules {
		if r.Name == name && r.Fixed {
			return 0, fmt.Errorf("rule %s is always enforced", name)
		}
		if r.Name == name {
			return Rule(i), nil
		}
	}
	return 0, fmt.Errorf("%q is not a rule", name)
}

var byReason = func() map[string]Rule {
	m := map[string]Rule{}
	for i, r := range Rules {
		for _, reason := range r.Reasons {
			m[reason] = Rule(i)
		}
	}
	return m
}()
