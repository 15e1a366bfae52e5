// Package roots has the verbs about file and pillar roots: saltclusterctl roots and sync-roots.
//
// In: the admin socket. Out: tables, and decisions about revisions and conflicts.
package roots
