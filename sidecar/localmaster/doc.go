// Package localmaster represents the stock salt-master beside saltclusterd: its configuration, its version, its files
// and sockets, and the means to make it work as one of many without changing it.
//
//   - Config: the master's effective options, computed as salt.config.master_config of its version does.
//   - InstallIdentity: installs the cluster's key pair in the layout of the version.
//   - Hidden: the pseudo minion whose sign-in yields the running master's AES key and shows which key it presents.
//   - Sessions: the session key files that make the master use the cluster's session keys.
//   - DropIn: writes and checks the few options a master needs behind saltclusterd.
//
// Promises: files appear whole or not at all and never outside the master's own directories, whatever an id contains;
// owner and mode are what the stock master would have used; secrets never reach logs or errors.
//
// Vocabulary is Salt's: option names, pki_dir, cachedir, sock_dir, tag, jid.
package localmaster
