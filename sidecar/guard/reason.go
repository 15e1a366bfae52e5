package guard

import (
	"errors"
	"strings"

	"saltclusterd/sidecar/saltwire"
)

// Reason says why a request was refused. It is stable and fit for a metric label.
type Reason string

// The reasons found by the guard or reported by the proxy. A body or load that does not parse has the reason of
// sidecar/saltwire instead, with underscores.
const (
	ReasonVersion        Reason = "version_too_old" // below minimum_auth_version
	ReasonInvalidID      Reason = "invalid_id"      // not an id a minion may have
	ReasonAdminCommand   Reason = "admin_command"   // publish, runner, wheel, tokens: not from this address
	ReasonUnknownCommand Reason = "unknown_command" // in clear; no Salt has it
	// in clear, from another node, and no sign-in; or sealed where only those come
	ReasonRelayedClear   Reason = "relayed_clear"
	ReasonUnusablePub    Reason = "unusable_pub"       // sign-in with something that is no RSA key
	ReasonKeyNotAccepted Reason = "key_not_accepted"   // sealed request of an id without accepted key
	ReasonKeyUnusable    Reason = "key_unusable"       // the accepted key is no RSA key
	ReasonNotAuthentic   Reason = "not_authentic"      // the ciphertext does not open with the session key
	ReasonIDMismatch     Reason = "id_mismatch"        // the id inside is not the one outside
	ReasonNonce          Reason = "bad_nonce"          // missing, or not 32 printable characters
	ReasonExpired        Reason = "expired"            // older than request_server_ttl
	ReasonNoTimestamp    Reason = "no_timestamp"       // while request_server_ttl is set
	ReasonNoToken        Reason = "no_token"           // required since payload version 3
	ReasonBadToken       Reason = "bad_token"          // not signed with the accepted key
	ReasonNotRouted      Reason = "no_master_can_take" // no master is up
	ReasonMalformed      Reason = "malformed"          // parse error without a reason of its own
	ReasonDowngrade      Reason = "protocol_downgrade" // older than what the key's owner has proven to speak
	ReasonWithoutAES     Reason = "load_without_aes"   // and not allowed, or not over TLS to this node
	ReasonCertificate    Reason = "certificate_of_another_id"
	ReasonUnknownSealed  Reason = "unknown_command_sealed"
)

// Refusal is what becomes of a refused request.
type Refusal struct {
	Reason Reason
	Answer []byte // for the sender, owned by the caller; nil: none, the request is dropped
}

// Error makes a Refusal usable as an error.
func (r *Refusal) Error() string { return "request refused: " + string(r.Reason) }

// parseReason turns the reason of a parse error into one of ours, and says whether its sender gets an answer.
func parseReason(err error) (Reason, []byte) {
	var refused *saltwire.Refused
	if !errors.As(err, &refused) {
		return ReasonMalformed, saltwire.BadLoad()
	}
	reason := Reason(strings.ReplaceAll(refused.Reason, " ", "_"))
	switch refused.Reason {
	case saltwire.ReasonEnc:
		return reason, nil // docs/dev/protocol.md §2.1: dropped before anything else
	case saltwire.ReasonEncAlgo, saltwire.ReasonSigAlgo:
		return reason, saltwire.AppendClearRet(nil, refused.Reason) // as stock masters answer
	}
	return reason, saltwire.BadLoad()
}
