// Package config reads and checks /etc/salt/saltclusterd and the files beside it in saltclusterd.d/*.conf.
//
// It owns one table (Options) with a row per option: name, place in Config, default, bounds and documentation. Reading,
// checking, `saltclusterctl config show` and the commented default file all come from that table.
//
// In: strict YAML. Out: a Config, which is a plain value, or Findings: all mistakes at once, each with file, line,
// option and, if it is known, the correction.
//
// Promises: an unknown or repeated option is an error, never ignored; a value in a later file replaces that of an
// earlier one completely; a secret never appears in an error, a log record or a printed value, and a file that holds it
// must not be readable by everyone; nothing here opens a socket or writes a file.
//
// Vocabulary: an option is a top-level key, named as in Salt's own cluster where that has the same concept; its source
// is "default" or "file:line"; a finding is one sentence about one option.
package config
