package main

import (
	"flag"
	"strings"

	"saltclusterd/cmd/saltclusterd/config"
	"saltclusterd/packaging/manual"
)

// manualPage renders saltclusterd(8) from the flags.
func manualPage(flags *flag.FlagSet, version string) []byte {
	p := manual.New("saltclusterd", 8, "saltclusterd "+version, "high availability for this host's salt-master")
	p.Heading("SYNOPSIS")
	p.Bold("saltclusterd [--config FILE] [--check] [--version]")
	p.Heading("DESCRIPTION")
	p.Text("saltclusterd runs beside a stock salt-master (3006, 3007 or 3008) and takes over the ports 4505 and 4506 in front of it. The " +
		"masters of a cluster answer minions as one. It runs as the user the salt-master runs as. Until saltclusterctl bootstrap or join it belongs " +
		"to no cluster and opens neither port.")
	p.Heading("OPTIONS")
	flags.VisitAll(func(f *flag.Flag) {
		placeholder, usage := flag.UnquoteUsage(f)
		if f.DefValue != "" && f.DefValue != "false" {
			usage += " (default: " + f.DefValue + ")"
		}
		p.Item("--"+f.Name, strings.ToUpper(placeholder), usage)
	})
	addSignals(p)
	addEnvironment(p)
	p.Heading("EXIT STATUS")
	p.Item("0", "", "it was stopped, or another process has taken over")
	p.Item("1", "", "a part failed; the log says which")
	p.Item("78", "", "the command line or the configuration is invalid; systemd does not try again")
	p.Heading("FILES")
	c := config.DefaultConfig()
	p.Item(config.DefaultPath, "", "configuration, see saltclusterd.conf(5); then the files of "+config.DefaultPath+".d")
	p.Item(c.Paths.StateDir, "",
		"the state of the node: its key, the consensus log, returns in transit. Never on a shared file system")
	p.Item(c.Paths.RunDir+"/admin.sock", "", "the socket that saltclusterctl talks to")
	p.Text("The log goes to standard error, and so to the journal (journalctl -u saltclusterd); there is no log file.")
	p.Heading("SEE ALSO")
	p.Text("saltclusterctl(1), saltclusterd.conf(5), salt-master(1)")
	return p.Bytes()
}

func addSignals(p *manual.Page) {
	p.Heading("SIGNALS")
	p.Item("SIGTERM, SIGINT", "",
		"stop: load balancers are informed, and minions are disconnected over drain_announce and drain_time. A second signal stops it at once")
	p.Item("SIGHUP", "",
		"the program that is at the same path now takes over and rereads the configuration; minions keep their connections. "+
			"With an invalid configuration the running process continues. saltclusterctl upgrade does the same and reports the result")
}

func addEnvironment(p *manual.Page) {
	p.Heading("ENVIRONMENT")
	p.Item("NOTIFY_SOCKET, WATCHDOG_USEC", "",
		"set by systemd: saltclusterd reports there that it is ready, which process replaces it in an upgrade, and that it is alive")
	p.Item("CREDENTIALS_DIRECTORY", "",
		"set by systemd: the file cluster_secret there is the cluster's secret, unless the configuration has one")
}
