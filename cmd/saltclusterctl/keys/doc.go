// Package keys has the verbs about minion keys: saltclusterctl keys.
//
// In: the admin socket, and for collect and merge the pki_dir of masters and files of earlier collections. Out: tables,
// decisions of the cluster, files of collected keys.
//
// Promises: a key that is accepted on one master and something else on another is never decided without a question or
// an option that says so.
package keys
