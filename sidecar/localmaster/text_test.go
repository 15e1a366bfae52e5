package localmaster_test

import "strings"

func replaceDir(text, dir string) string { return strings.ReplaceAll(text, "@", dir) }

func splitLines(s string) []string { return strings.Split(strings.TrimSpace(s), "\n") }
