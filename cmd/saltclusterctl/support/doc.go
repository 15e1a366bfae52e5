// Package support has the verbs that look for what is wrong: saltclusterctl doctor, bundle, logs and profile.
//
// In: the admin socket, the files and processes of this host. Out: findings with what to type, or a file for whoever
// supports this installation.
//
// Promises: secrets are taken out of bundles; a verb says what it could not look at.
package support
