// Package tlsconfig makes the TLS configuration of the ports for minions from the option ssl of the stock master.
//
//   - ReadOptions: the option, understood as salt.transport.base.ssl_context of the master's version does.
//   - Options.Load: certificate, key and CAs from their files.
//   - Source: the configuration in force; its files are read again when they change.
//   - Examine: what is wrong, or soon will be, with what was loaded.
//
// Promises: an option that cannot be honoured is a finding, and one without which connections would be less protected
// than the operator asked has TLS refused. New files take effect as a whole or not at all: a pair that does not fit
// leaves the one before in force. Keys never reach logs or errors. Whatever is read is bounded.
//
// Not here: connections (package edge), and what a certificate's names allow a minion to do.
package tlsconfig
