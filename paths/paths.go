// Package paths compares absolute paths, and finds what exists of them.
package paths

import (
	"os"
	"path/filepath"
	"strings"
)

// Within says whether a clean path is dir or below it.
func Within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// Existing returns path, or the nearest directory above it that exists.
func Existing(path string) string {
	for path != filepath.Dir(path) {
		if _, err := os.Stat(path); err == nil {
			break
		}
		path = filepath.Dir(path)
	}
	return path
}
