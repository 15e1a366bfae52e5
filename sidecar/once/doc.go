// Package once recognises loads of minions that have arrived before, byte for byte. Each load holds a nonce, so equal
// loads are one request that took two paths, or a replay. The package keeps a bounded number of their hashes in memory.
package once
