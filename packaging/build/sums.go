package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sumsName is what sha256sum -c reads.
const sumsName = "SHA256SUMS"

// writeSums lists what was made.
func (b *builder) writeSums() error {
	var list strings.Builder
	for _, name := range slices.Sorted(slices.Values(b.made)) {
		text, err := os.ReadFile(filepath.Join(b.out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%x  %s\n", sha256.Sum256(text), name)
	}
	return os.WriteFile(filepath.Join(b.out, sumsName), []byte(list.String()), 0o644)
}
