// Package jointoken has the text that lets one node join a cluster once: what `saltclusterctl token create` prints and
// `saltclusterctl join --token-file` reads.
//
//			sct1.<id>.<seed>.<cluster>
//
//	  - id: ten lower-case letters and digits, public: it names the token in lists and in the log.
//	  - seed: 128 random bits, the secret. An Ed25519 key is derived from it; its holder signs the channel of a join
//	    with it (gossip/peer). Only the public half ever leaves the host where the token was made: neither the
//	    saltclusterd that was asked, nor the cluster's log, nor a backup of it is enough to join.
//	  - cluster: the SHA-256 of the cluster's public key. The member that the joiner reaches signs the channel with the
//	    private one, so a token is good with this cluster only, and a false member learns nothing from it.
//
// The package is pure: no clock, no files, no goroutines. A Token does not reveal its secret when it is printed.
package jointoken
