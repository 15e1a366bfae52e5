package config

import (
	"fmt"
	"strings"
)

const referenceHead = `# Configuration

Made from the option table (` + "`go test ./cmd/saltclusterd/config -update`" + `), as the commented default file and the manual page
saltclusterd.conf(5) are.

The files are ` + "`" + DefaultPath + "` and then `" + DefaultPath + `.d/*.conf` + "`" + ` in the order of their names: YAML, in which a later value
replaces an earlier one whole. An unknown option and one that is written twice are errors, told with file, line and what may have been
meant. Directories, ports, roots and the user of the salt-master are read from its own configuration. Changes take
effect with ` + "`saltclusterctl upgrade`" + ` or ` + "`systemctl reload saltclusterd`" + `, which let no minion go; a configuration with
a mistake leaves the running process alone and says so.

` + "```" + `sh runnable=site
saltclusterctl config check                # mistakes, each with file, line and what may have been meant
saltclusterctl config show --effective     # what runs
saltclusterctl config diff                 # between the files and what runs; exit code 10 when there is any
` + "```" + `
`

// Reference renders the option table as docs/configure.md.
func Reference() []byte {
	var b strings.Builder
	b.WriteString(referenceHead)
	c, section := DefaultConfig(), ""
	for _, o := range Options() {
		if o.Section != section {
			section = o.Section
			fmt.Fprintf(&b, "\n## %s\n", section)
		}
		fmt.Fprintf(&b, "\n### `%s`\n\n", o.Name)
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

// escapeMarkdown keeps what stands in an option's words from being taken for markup.
func escapeMarkdown(line string) string {
	return strings.NewReplacer("*", `\*`, "<", `\<`).Replace(line)
}
