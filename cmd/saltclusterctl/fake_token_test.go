package main

import (
	"context"
	"time"

	"saltclusterd/sidecar/adminapi"
)

// fakeTokens are fixed but for the one that was made last.
func (f *fake) Tokens(context.Context) (adminapi.Tokens, error) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.Local)
	used := at.Add(time.Minute)
	return adminapi.Tokens{Tokens: []adminapi.Token{
		{ID: "k7m2q9x4ab", State: adminapi.TokenUsed, By: "m1", Created: at, Expires: at.Add(time.Hour), UsedBy: "m4",
			Used: &used},
		{ID: "zzz3yyy4xx", State: adminapi.TokenOpen, By: "m2", Created: at, Expires: at.Add(time.Hour), Node: "m5",
			Note: "rack 5"},
	}}, f.err
}

func (f *fake) CreateToken(_ context.Context, r adminapi.TokenRequest) (adminapi.TokenCreated, error) {
	if r.Valid > 720*time.Hour {
		return adminapi.TokenCreated{}, adminapi.Errorf(adminapi.CodeInvalid, "", "a token is good for 720h")
	}
	return adminapi.TokenCreated{
		Token: adminapi.Token{ID: r.ID, State: adminapi.TokenOpen, Node: r.Node, Note: r.Note, By: "m1",
			Expires: time.Now().Add(r.Valid)},
		ClusterID:  "salt-lab",
		ClusterPub: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		Addresses:  []string{"10.0.0.11:4520"},
	}, f.err
}

func (f *fake) RevokeToken(_ context.Context, id string) (adminapi.Token, error) {
	if id != "k7m2q9x4ab" {
		return adminapi.Token{}, adminapi.Errorf(adminapi.CodeNotFound, "saltclusterctl token list", "there is no token %q",
			id)
	}
	return adminapi.Token{ID: id}, f.err
}
