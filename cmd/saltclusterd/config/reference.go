package config

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
)

const referenceHead = `# Configuration

Made from the option table (` + "`go test ./cmd/saltclusterd/config -update`" + `), as the commented default file and the manual page
saltclusterd.conf(5) are.

saltclusterd reads ` + "`" + DefaultPath + "`, then `" + DefaultPath + `.d/*.conf` + "`" + ` in the order of their names. The files are YAML; a later
value replaces an earlier one whole. An unknown option, and one that occurs twice, are errors, reported with file, line and a
suggestion. Directories, ports, roots and the user of the salt-master are read from its own configuration.

A reload is ` + "`saltclusterctl upgrade`" + ` or ` + "`systemctl reload saltclusterd`" + ` (without systemd: SIGHUP to the process): no minion loses its
connection. If the configuration has a mistake, the running process continues unchanged and reports the mistake. A restart is
` + "`systemctl restart saltclusterd`" + `: the minions of this node then move to the other nodes. A change takes effect
with a reload where the option does not say otherwise. An address overlaps the old one when, for example, 127.0.0.1:4580 becomes 0.0.0.0:4580.

` + "```" + `sh runnable=site
saltclusterctl config check                # errors, each with file, line and a suggestion
saltclusterctl config show --running       # what runs
saltclusterctl config diff                 # between the files and what runs; exit code 10 when there is any
` + "```" + `
`

// Reference renders the option table as docs/reference/configuration.md.
func Reference() []byte {
	var b strings.Builder
	b.WriteString(referenceHead)
	c, section := DefaultConfig(), ""
	for _, o := range Options() {
		if o.Section != section {
			section = o.Section
			fmt.Fprintf(&b, "\n## %s\n", section)
		}
		fmt.Fprintf(&b, "\n### `%s`\n\n%s\n\n", o.Name, strings.TrimSpace("Type: "+o.typeName()+". "+o.Applied))
		for _, line := range wrapText(o.Doc, 120) {
			b.WriteString(escapeMarkdown(line) + "\n")
		}
		if o.Example != "" {
			fmt.Fprintf(&b, "\nExample: `%s: %s`\n", o.Name, o.Example)
		} else if !strings.Contains(o.Doc, "Default:") {
			fmt.Fprintf(&b, "\nDefault: `%s`\n", Flow(plainValue(o.currentValue(&c))))
		}
	}
	return []byte(b.String())
}

// typeName is the kind of value that an option has, in the words of YAML where there is one.
func (o Option) typeName() string {
	switch o.field(&Config{}).(type) {
	case *int:
		return "number"
	case *bool:
		return "True or False"
	case *Size:
		return "size: bytes, or as 64MiB"
	case *time.Duration:
		return "time: seconds, or as 500ms, 10s or 24h"
	case *[]string:
		return "list"
	case *[]netip.Prefix:
		return "list of addresses or networks"
	case *map[string]string:
		return "map"
	case *map[string][]netip.Prefix:
		return "map of lists of addresses or networks"
	case *[]TagRule:
		return "map of globs of tags, in order"
	}
	return "text"
}

// escapeMarkdown keeps what stands in an option's words from being taken for markup.
func escapeMarkdown(line string) string {
	return strings.NewReplacer("*", `\*`, "<", `\<`).Replace(line)
}
