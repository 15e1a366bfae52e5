package main

import (
	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/sidecar/adminapi"
)

// fileRow tells who answers minions that ask for files.
func fileRow(f *adminapi.Files) [][]console.Cell {
	if f == nil {
		return nil
	}
	text := "go to the salt-master: " + f.Reason
	if f.Path == adminapi.PathNative {
		if text = "served here"; f.Reason != "" {
			text += "; " + f.Reason
		}
	}
	return [][]console.Cell{{{Text: "files"}, console.Txt(text)}}
}
