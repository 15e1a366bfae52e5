package main

import (
	"fmt"
	"runtime"

	"github.com/urfave/cli/v2"
	"saltclusterd/sidecar/adminapi"
)

// versions is what the version verb shows.
type versions struct {
	Client adminapi.Version  `json:"client"`
	Daemon *adminapi.Version `json:"daemon,omitempty"`
	Error  string            `json:"error,omitempty"` // why the daemon's is not known
}

func newVersionCommand(e *env) *cli.Command {
	return completeCommand(&cli.Command{
		Name:  "version",
		Usage: "show the versions of this tool and of the running saltclusterd",
		Action: func(c *cli.Context) error {
			if err := noArgs(c); err != nil {
				return err
			}
			return runVersion(c, e)
		},
	})
}

// runVersion succeeds without a daemon: the tool has a version of its own.
func runVersion(c *cli.Context, e *env) error {
	if err := checkOperation(c); err != nil {
		return err
	}
	v := versions{Client: adminapi.Version{Version: buildVersion(), Go: runtime.Version(), API: adminapi.APIVersion}}
	if daemon, err := askAdmin(c, e, (*adminapi.Client).Version); err != nil {
		v.Error = err.Error()
	} else {
		v.Daemon = &daemon
	}
	return e.printValue(c, v, func(s *screen) {
		s.line("saltclusterctl %s", v.Client.Version)
		if v.Daemon == nil {
			s.line("saltclusterd   unknown: %s", clean(v.Error))
			return
		}
		detail := fmt.Sprintf("on %s", v.Daemon.Node)
		if v.Daemon.SaltVersion != "" {
			detail += ", beside salt-master " + v.Daemon.SaltVersion
		}
		s.line("saltclusterd   %s %s", clean(v.Daemon.Version), clean(detail))
	})
}
