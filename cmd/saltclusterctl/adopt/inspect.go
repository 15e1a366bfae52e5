package adopt

import (
	"path/filepath"

	"github.com/urfave/cli/v2"

	"saltclusterd/cmd/saltclusterctl/console"
	"saltclusterd/sidecar/adminapi"
)

// HostFlags say where this host's salt-master is.
func HostFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "config-dir", Aliases: []string{"c"},
			Usage: "`DIR` with the files master and saltclusterd; default: /etc/salt"},
		&cli.StringFlag{Name: "salt-master", Usage: "`PROGRAM`, where it is not in $PATH"},
	}
}

// InspectSite looks at this host, and asks the daemon. Where no process has the socket, it does not run. One that this
// user may not ask, or that does not answer in time, may run, and then what is to be done depends on what it says.
func InspectSite(e *console.Env, c *cli.Context) (*Site, error) {
	a, err := readAsked(e, c)
	if err != nil {
		return nil, err
	}
	st, err := console.AskAdmin(c, e, (*adminapi.Client).Status)
	switch {
	case err == nil:
		return lookAt(c, a, &st)
	case adminapi.IsDown(err):
		return lookAt(c, a, nil)
	}
	return nil, err
}

// InspectMaster looks at the salt-master of this host, whatever its saltclusterd does.
func InspectMaster(e *console.Env, c *cli.Context) (*Site, error) {
	a, err := readAsked(e, c)
	if err != nil {
		return nil, err
	}
	return lookAt(c, a, nil)
}

// readAsked reads the command line. The socket is found by what it says from then on.
func readAsked(e *console.Env, c *cli.Context) (Asked, error) {
	a := Asked{Own: e.ConfigPath(c), Command: c.String("salt-master"), Node: c.String("node"),
		ClusterID: c.String("cluster-id"), Join: c.String("join"), Proc: "/proc",
		Srv: "/srv"}
	if dir := c.String("config-dir"); dir != "" {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return a, err
		}
		a.Master = filepath.Join(dir, "master")
		if !c.IsSet("config") {
			a.Own = filepath.Join(dir, "saltclusterd")
		}
	}
	return a, c.Set("config", a.Own)
}

func lookAt(c *cli.Context, a Asked, status *adminapi.Status) (*Site, error) {
	site, err := Look(c.Context, a, status)
	if err != nil {
		return nil, console.Refusedf("say where it is with --salt-master PROGRAM and --config-dir DIR", "%v", err)
	}
	return site, nil
}
