// Package tlsconfig builds the TLS configuration of the ports for minions from the option ssl of the stock master.
//
//   - ReadOptions: the option, interpreted as salt.transport.base.ssl_context of the master's version does.
//   - Options.Load: certificate, key and CAs from their files.
//   - Source: the configuration in force; its files are read again when they change.
//   - Examine: problems, present or upcoming, with what was loaded.
//
// Promises: an option that cannot be honoured is a finding. If ignoring it would protect connections less than the
// operator asked for, TLS is refused. New files take effect as a whole or not at all: if certificate and key do not
// match, the previous pair stays in force. Keys never reach logs or errors. The size of everything that is read is
// bounded.
//
// Not here: connections (package edge), and what a certificate's names allow a minion to do.
package tlsconfig
