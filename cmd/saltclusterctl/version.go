package main

import (
	"fmt"
	"runtime"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/buildversion"
	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/sidecar/adminapi"
)

// versions is what the version verb shows.
type versions struct {
	Client adminapi.Version  `json:"client"`
	Daemon *adminapi.Version `json:"daemon,omitempty"`
	Error  string            `json:"error,omitempty"` // why the daemon's is not known
}

func newVersionCommand(e *console.Env) *cli.Command {
	return console.CompleteCommand(&cli.Command{
		Name:   "version",
		Usage:  "show the versions of this tool and of the running saltclusterd",
		Action: console.WithoutArgs(e, runVersion),
	})
}

// runVersion succeeds without a daemon: the tool has a version of its own.
func runVersion(c *cli.Context, e *console.Env) error {
	v := versions{Client: adminapi.Version{Version: buildversion.Get(), Go: runtime.Version(), API: adminapi.APIVersion}}
	if daemon, err := console.AskAdmin(c, e, (*adminapi.Client).Version); err != nil {
		v.Error = err.Error()
	} else {
		v.Daemon = &daemon
	}
	return e.PrintValue(c, v, func(s *console.Screen) {
		s.Line("saltclusterctl %s", v.Client.Version)
		if v.Daemon == nil {
			s.Line("saltclusterd   unknown: %s", console.Clean(v.Error))
			return
		}
		detail := fmt.Sprintf("on %s", v.Daemon.Node)
		if v.Daemon.SaltVersion != "" {
			detail += ", beside salt-master " + v.Daemon.SaltVersion
		}
		s.Line("saltclusterd   %s %s", console.Clean(v.Daemon.Version), console.Clean(detail))
	})
}
