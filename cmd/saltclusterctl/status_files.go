package main

import "saltclusterd/sidecar/adminapi"

// fileRow tells who answers minions that ask for files.
func fileRow(f *adminapi.Files) [][]cell {
	if f == nil {
		return nil
	}
	text := "go to the salt-master: " + f.Reason
	if f.Path == adminapi.PathNative {
		if text = "served here"; f.Reason != "" {
			text += "; " + f.Reason
		}
	}
	return [][]cell{{{text: "files"}, txt(text)}}
}
