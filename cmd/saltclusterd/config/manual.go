package config

import (
	"strings"

	"saltclusterd/packaging/manual"
)

// Manual renders saltclusterd.conf(5) from the option table.
func Manual(version string) []byte {
	p := manual.New("saltclusterd.conf", 5, "saltclusterd "+version, "configuration of saltclusterd")
	p.Heading("SYNOPSIS")
	p.Bold(DefaultPath)
	p.Bold(DefaultPath + ".d/*.conf")
	p.Heading("DESCRIPTION")
	p.Text("The main file is read first, then those of the directory in the order of their names. They are YAML; a later value " +
		"replaces an earlier one whole. An unknown option and one that is written twice are errors. Directories, ports, roots and user " +
		"of the salt-master are read from its own configuration. A changed file takes effect with a reload (saltclusterctl upgrade, or " +
		"systemctl reload saltclusterd), which disconnects no minion, unless the option says otherwise.")
	p.Lines("saltclusterctl config check", "saltclusterctl config show", "saltclusterctl config default")
	p.Text("list errors with file and line, show every value and where it comes from, and print the commented default file.")
	p.Heading("OPTIONS")
	c, section := DefaultConfig(), ""
	for _, o := range Options() {
		if o.Section != section {
			section = o.Section
			p.Sub(section)
		}
		p.Item(o.Name, "", o.Doc)
		if value := Flow(plainValue(o.currentValue(&c))); o.Example == "" && !strings.Contains(o.Doc, "Default:") {
			p.Under("Default: " + value)
		} else if o.Example != "" {
			p.Under("Example: " + o.Name + ": " + o.Example)
		}
		if o.Applied != "" {
			p.Under(o.Applied)
		}
	}
	p.Heading("SEE ALSO")
	p.Text("saltclusterd(8), saltclusterctl(1)")
	return p.Bytes()
}
