// Command saltclusterctl is the operator's tool: it asks the saltclusterd of
// this host, over its admin socket, about the whole cluster, and gives it
// commands.
//
// There is one file per verb, here or, for verbs that belong together, in a
// package of their own (keys, roots, migrate, support, snapshot): newXCommand
// makes the command, runX(ctx, ...) does it. Everything a verb touches (streams,
// environment) comes from console.Env, so that tests run the whole program in a
// script.
//
// In: arguments, the admin socket. Out: a table for people, or JSON or YAML
// with the field names of package adminapi, which are stable; errors as
// a sentence and a hint on standard error; exit codes as listed in the help.
//
// Promises: nothing but reading happens without a verb that says so; secrets
// are taken from files or standard input, never from arguments; colours appear
// on terminals only.
package main
