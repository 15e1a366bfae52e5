// Package keysadmin shows operators the minion keys of the cluster and carries out their decisions about them.
//
// In: the consensus log, and the key directory of this node, which restores accepted keys when too many of them are
// taken away on its host at once. Out: the verbs about keys (list, decide, held, merge), and the health check of held
// keys.
//
// Promises: each key is decided about separately, and a decision about a key that has changed in the meantime is
// refused. An answer about keys that a merge is based on is not older than the moment of the question.
package keysadmin
