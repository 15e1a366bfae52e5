// Command saltclusterctl is the operator's tool: it queries and controls the whole cluster through the admin socket of
// this host's saltclusterd.
//
// There is one file per verb, here or, for verbs that belong together, in a package of their own (keys, roots, migrate,
// support, snapshot): newXCommand makes the command, runX(ctx, ...) does it. Everything a verb touches (streams,
// environment) comes from console.Env, so that tests run the whole program in a script.
//
// In: arguments, the admin socket. Out: a table for people, or JSON or YAML with the field names of package adminapi,
// which are stable; errors as a sentence and a hint on standard error; exit codes as listed in the help.
//
// Promises: only verbs that say so change anything; secrets are taken from files or standard input, never from
// arguments; colours appear on terminals only.
package main
