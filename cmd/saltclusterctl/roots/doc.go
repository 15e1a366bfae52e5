// Package roots has the verbs about file and pillar roots: saltclusterctl roots and sync-roots.
//
// In: the admin socket. Out: tables, and what the cluster shall do with revisions and conflicts.
package roots
