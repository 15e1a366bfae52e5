// Package console is shared by the verbs of saltclusterctl: streams and environment (Env), flags, the admin socket,
// tables and other formats (Screen, Env.PrintValue), progress, questions, errors and exit codes.
//
// In: a command line, standard input, the admin socket. Out: a table for people, or JSON or YAML with the field names
// of package adminapi; errors as a sentence and a hint on standard error; exit codes as listed in the help.
//
// Promises: control characters in foreign text do not reach a terminal; colours appear on terminals only; a verb that
// has to ask needs a terminal or --yes.
package console
