// Package once recognises loads of minions that have come before, byte for byte: each holds a nonce, so that they are
// one request that took two ways, or a replay. It keeps a bounded number of them, by hash, in memory.
package once
