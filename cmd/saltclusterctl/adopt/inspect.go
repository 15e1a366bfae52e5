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

// InspectSite looks at this host. A daemon that does not answer is one that does not run.
func InspectSite(e *console.Env, c *cli.Context) (*Site, error) {
	a := Asked{Own: e.ConfigPath(c), Command: c.String("salt-master"), Node: c.String("node"),
		ClusterID: c.String("cluster-id"), Join: c.String("join"), Proc: "/proc"}
	if dir := c.String("config-dir"); dir != "" {
		dir, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		a.Master = filepath.Join(dir, "master")
		if !c.IsSet("config") {
			a.Own = filepath.Join(dir, "saltclusterd")
		}
	}
	if err := c.Set("config", a.Own); err != nil { // the socket is found by it
		return nil, err
	}
	var status *adminapi.Status
	if st, err := console.AskAdmin(c, e, (*adminapi.Client).Status); err == nil {
		status = &st
	}
	site, err := Look(c.Context, a, status)
	if err != nil {
		return nil, console.Refusedf("say where it is with --salt-master PROGRAM and --config-dir DIR", "%v", err)
	}
	return site, nil
}
