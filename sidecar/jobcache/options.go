package jobcache

import (
	"crypto"
	_ "crypto/md5" // hash_type
	_ "crypto/sha1"
	_ "crypto/sha256"
	_ "crypto/sha512"
	"fmt"

	"saltclusterd/sidecar/localmaster"
)

// Options are the master's effective options.
type Options interface {
	localmaster.Options
	Int(name string) int64
}

// The versions whose code this package mirrors.
const (
	minMajor = 3006
	maxMajor = 3008
)

var hashes = map[string]crypto.Hash{
	"md5": crypto.MD5, "sha1": crypto.SHA1, "sha224": crypto.SHA224, "sha256": crypto.SHA256, "sha384": crypto.SHA384,
	"sha512": crypto.SHA512,
}

// Native says whether what is sent with cmd (_return, _syndic_return, _minion_event) to a master of that version with
// these options can be handled here. Otherwise reason says why not, in words for an operator. It looks for a job cache
// module of the site's own too, so ask again when the master restarts.
func Native(o Options, major int, cmd string) (ok bool, reason string) {
	switch cmd {
	case "_return", "_syndic_return", "_minion_event":
	default:
		return false, fmt.Sprintf("%s is neither a return nor an event", cmd)
	}
	switch {
	case major < minMajor || major > maxMajor:
		return false, fmt.Sprintf("Salt %d is not a version whose job cache is known here", major)
	case o.Text("master_job_cache") != "local_cache":
		return false, fmt.Sprintf("master_job_cache is %q, not local_cache", o.Text("master_job_cache"))
	case !o.Bool("job_cache"):
		return false, "job_cache is off"
	case o.Bool("ext_job_cache"):
		return false, fmt.Sprintf("ext_job_cache is %q", o.Text("ext_job_cache"))
	case o.Bool("cluster_id"):
		return false, "cluster_id is set: the master is in a cluster of its own"
	case hashes[o.Text("hash_type")] == 0:
		return false, fmt.Sprintf("hash_type is %q", o.Text("hash_type"))
	case o.Bool("enable_ssh_minions"):
		return false, "enable_ssh_minions is on: targets include a roster"
	case o.Bool("subproxy"):
		return false, "subproxy is on"
	case o.Bool("master_stats"):
		return false, "master_stats is on: the master's statistics would leave returns out"
	case localmaster.Enabled(o, "metrics"), localmaster.Enabled(o, "tracing"):
		return false, "metrics or tracing of the master are enabled: they would leave returns out"
	}
	if path := localmaster.SiteModule(localmaster.ModuleDirs(o, "returner_dirs", "returners"), "local_cache"); path != "" {
		return false, "the site has its own job cache module " + path
	}
	return true, ""
}

// relevant are the options that decide how returns are taken.
var relevant = []string{
	"master_job_cache", "job_cache", "ext_job_cache", "cluster_id", "hash_type", "enable_ssh_minions", "subproxy",
	"master_stats",
	"metrics", "tracing", "returner_dirs", "extension_modules", "module_dirs", "cachedir", "user", "max_event_size",
	"job_cache_store_endtime", "require_minion_sign_messages", "drop_messages_signature_fail", "signing_algorithm",
	"unique_jid", "verify_env",
}

// Same says whether a master with options a takes returns as one with options b.
func Same(a, b Options) bool { return localmaster.SameOptions(a, b, relevant) }
