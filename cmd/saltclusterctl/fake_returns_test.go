package main

import (
	"context"
	"time"

	"saltclusterd/sidecar/adminapi"
)

func (f *fake) UnansweredReturns(context.Context) (adminapi.UnansweredReturns, error) {
	out := adminapi.UnansweredReturns{From: f.status.Node.ID, Returns: []adminapi.UnansweredReturn{}}
	if f.status.Node.Returns != nil && f.status.Node.Returns.Unanswered > 0 {
		out.Returns = append(out.Returns, adminapi.UnansweredReturn{
			ID: "4f1c08d2aa3b9e67", Minion: "web1\x1b[31m", JID: aJob, Function: "state.apply",
			Since: ago(3*time.Hour + 30*time.Second), Received: ago(4 * time.Hour),
			Bytes: 512, Tries: 4, Next: time.Now().Add(7*time.Hour + 30*time.Second), Error: "no reply in time",
		}, adminapi.UnansweredReturn{ID: "b0", Since: ago(time.Hour + 30*time.Second), Bytes: 8, Error: "the file is damaged"})
		out.Full = true
	}
	return out, f.err
}

func (f *fake) RetryReturns(context.Context) (adminapi.RetriedReturns, error) {
	out := adminapi.RetriedReturns{From: f.status.Node.ID}
	if f.status.Node.Returns != nil && f.status.Node.Returns.Unanswered > 0 {
		out.Returns, out.Damaged, out.MasterDown = 1, 1, true
	}
	return out, f.err
}

func (f *fake) DropReturn(_ context.Context, id string) (adminapi.UnansweredReturn, error) {
	if id != "4f1c08d2aa3b9e67" {
		return adminapi.UnansweredReturn{}, adminapi.Errorf(adminapi.CodeNotFound, "saltclusterctl returns list",
			"there is no return %q", id)
	}
	return adminapi.UnansweredReturn{ID: id, Minion: "web1", JID: aJob}, f.err
}
