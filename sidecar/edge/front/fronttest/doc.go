// Package fronttest makes certificates for tests of TLS.
package fronttest
