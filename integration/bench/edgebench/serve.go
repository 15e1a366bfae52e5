package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	_ "net/http/pprof" // for -pprof
	"os"

	"saltclusterd/sidecar/edge"
)

// echo answers every request with itself.
type echo struct{}

func (echo) ServeReq(_ context.Context, r *edge.Request) { r.Reply(r.Body) }

// serve is the server under test, in a process of its own: serve req|pub PORT.
func serve(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: serve req|pub PORT")
	}
	if addr := os.Getenv("EDGEBENCH_PPROF"); addr != "" {
		go func() { _ = http.ListenAndServe(addr, nil) }()
	}
	addr := []string{"127.0.0.1:" + args[1]}
	if args[0] == "req" {
		return serveReq(addr)
	}
	return servePub(addr)
}

func serveReq(addr []string) error {
	e, err := edge.NewReqEdge(edge.ReqConfig{Addrs: addr, Handler: echo{}})
	if err != nil {
		return err
	}
	if err := e.Open(context.Background()); err != nil {
		return err
	}
	defer e.Close()
	fmt.Println("ready")
	_, err = bufio.NewReader(os.Stdin).ReadString(0)
	return err
}

func servePub(addr []string) error {
	e, err := edge.NewPubEdge(edge.PubConfig{Addrs: addr})
	if err != nil {
		return err
	}
	if err := e.Open(context.Background()); err != nil {
		return err
	}
	defer e.Close()
	fmt.Println("ready")
	in := bufio.NewReader(os.Stdin)
	for {
		var count, size int
		if _, err := fmt.Fscan(in, &count, &size); err != nil {
			return err
		}
		body := make([]byte, size)
		for range count {
			e.Publish(edge.Publication{Body: body})
		}
		fmt.Println("sent")
	}
}
