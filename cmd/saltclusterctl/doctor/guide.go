package doctor

import "strings"

// Guide is docs/how-to/troubleshoot.md.
func Guide() string {
	var b strings.Builder
	b.WriteString(`# What Salt says, and what is behind it

Made of the same table that ` + "`saltclusterctl doctor --explain 'WORDS'`" + ` prints. Before anything else:

` + "```" + `sh runnable=site
saltclusterctl status            # this node and the cluster: what is wrong, and what to type
saltclusterctl doctor            # the host, the way between the nodes, the way of the minions
saltclusterctl doctor --haproxy /etc/haproxy/haproxy.cfg --via ADDRESS-OF-HAPROXY
` + "```" + `

` + "```" + `sh runnable=plain
saltclusterctl doctor --explain 'Invalid master key'      # what is below, for words that Salt has printed
` + "```" + `

` + "```" + `text shows
master_finger
` + "```" + `

Each finding says what is wrong, what comes of it and what to do. Exit code 10: something is broken; 0: nothing is, though there may be warnings.
`)
	for _, s := range Symptoms() {
		b.WriteString("\n## " + s.Words + "\n\nSaid by " + s.Where + ".\n\n| cause | is it so? | then |\n|---|---|---|\n")
		for _, c := range s.Causes {
			b.WriteString("| " + c.Cause + " | `" + c.Look + "` | " + c.Then + " |\n")
		}
	}
	return b.String()
}
