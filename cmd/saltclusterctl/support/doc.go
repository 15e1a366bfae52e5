// Package support has the verbs that diagnose a node: saltclusterctl doctor, bundle, logs and profile.
//
// In: the admin socket, the files and processes of this host. Out: findings with what to type, or a file for those who
// support this installation.
//
// Promises: secrets are removed from bundles; a verb reports what it could not check.
package support
