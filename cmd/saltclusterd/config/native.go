package config

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"saltclusterd/sidecar/localmaster"
)

// masters are options of the salt-master without a default of Salt's.
var masters = []string{"autosign_file", "autoreject_file", "include", "master_id", "master_sign_pubkey",
	"presence_events", "sign_pub_messages"}

func isMasters(name string) bool {
	return slices.Contains(masters, name) || localmaster.HasDefault(name)
}

// replacedBy are options of Salt's own cluster that have no use here, and why.
func replacedBy(name string) string {
	switch name {
	case "cluster_port":
		return "is called cluster_pool_port"
	case "cluster_key_pass":
		return "is not supported: the cluster's key is kept without a passphrase, readable by its owner only"
	case "cluster_encryption_algorithm":
		return "is not needed: nodes speak TLS 1.3 to each other"
	case "cluster_min_voters", "cluster_voter_health_check_interval",
		"cluster_demote_cooldown", "cluster_auto_replace_voters", "cluster_max_log_size", "cluster_election_min",
		"cluster_election_max", "cluster_join_timeout":
		return "tunes Salt's own consensus and has no meaning here"
	}
	return ""
}

// unknownOption says what is wrong with an option that the table does not have.
func unknownOption(name string) (msg, hint string) {
	if why := replacedBy(name); why != "" {
		return why, "remove the line"
	}
	if isMasters(name) {
		return "is an option of the salt-master", "put it into the salt-master's configuration; saltclusterd reads it there (salt_config)"
	}
	return "is not an option of saltclusterd", didYouMean(name, Names())
}

// clearCommandNames are the commands that ClearFuncs of salt.master offers to
// anybody who brings credentials, besides _auth and ping.
var clearCommandNames = []string{"get_token", "mk_token", "publish", "runner", "wheel"}

// transports are those that the edge serves.
var transports = []string{"zeromq", "tcp", "ws"}

func transportNames(v any) (string, string) {
	names := v.([]string)
	for _, name := range names {
		if !slices.Contains(transports, name) {
			return fmt.Sprintf("%q is not a transport that saltclusterd serves", name), "use one or more of " + strings.Join(transports, ", ")
		}
	}
	if len(names) == 0 {
		return "it names no transport, so that no minion could connect", "use one or more of " + strings.Join(transports, ", ")
	}
	return "", ""
}

func clearCommands(v any) (string, string) {
	for _, name := range slices.Sorted(maps.Keys(v.(map[string][]netip.Prefix))) {
		if !slices.Contains(clearCommandNames, name) {
			return fmt.Sprintf("%q is not an admin command", name), didYouMean(name, clearCommandNames)
		}
	}
	return "", ""
}
