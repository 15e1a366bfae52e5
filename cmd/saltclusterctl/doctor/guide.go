package doctor

import "strings"

// Guide is docs/how-to/troubleshoot.md.
func Guide() string {
	var b strings.Builder
	b.WriteString(`# What Salt says, why, and what to do

Find the words that Salt printed below, or have them explained by ` + "`saltclusterctl doctor --explain 'WORDS'`" + `, which has the same table.
[Messages of saltclusterd](../reference/messages.md) are on another page. Run these first:

` + "```" + `sh runnable=site
saltclusterctl status            # this node and the cluster: what is wrong, and what to type
saltclusterctl doctor            # the host, the network between the nodes, the path of the minions
saltclusterctl doctor --haproxy /etc/haproxy/haproxy.cfg --via ADDRESS-OF-HAPROXY
` + "```" + `

` + "```" + `sh runnable=plain
saltclusterctl doctor --explain 'Invalid master key'      # the section below for these words
` + "```" + `

` + "```" + `text shows
master_finger
` + "```" + `

Each finding of ` + "`doctor`" + ` says what is wrong, what it causes and what to do. Exit code 10: something is broken; 0: nothing is, though there
may be warnings.
`)
	for _, s := range Symptoms() {
		b.WriteString("\n## " + s.Words + "\n\nPrinted by " + s.Where + ".\n\n| cause | check with | fix |\n|---|---|---|\n")
		for _, c := range s.Causes {
			b.WriteString("| " + c.Cause + " | `" + c.Look + "` | " + c.Then + " |\n")
		}
	}
	return b.String()
}
