package doctor

import "strings"

// Guide is docs/how-to/troubleshoot.md.
func Guide() string {
	var b strings.Builder
	b.WriteString(`# What Salt says, why, and what to do

Find the section for the message that Salt printed. ` + "`saltclusterctl doctor --message 'WORDS'`" + ` shows the same text on the command line. Messages of
saltclusterd itself are on [another page](../reference/messages.md). Run these first:

` + "```" + `sh runnable=site
saltclusterctl status            # problems of this node and the cluster, and what to type
saltclusterctl doctor            # checks the host, the network between the nodes, and the ports for minions
saltclusterctl doctor --haproxy /etc/haproxy/haproxy.cfg --via ADDRESS-OF-HAPROXY
` + "```" + `

` + "```" + `sh runnable=plain
saltclusterctl doctor --message 'Invalid master key'      # shows the section for this message
` + "```" + `

` + "```" + `text shows
master_finger
` + "```" + `

Each finding of ` + "`doctor`" + ` says what is wrong, what the effect is and what to do. The exit code is 10 when something is broken, and 0
otherwise, even with warnings.
`)
	for _, s := range Symptoms() {
		b.WriteString("\n## " + s.Words + "\n\nPrinted by " + s.Where + ".\n\n| cause | check with | fix |\n|---|---|---|\n")
		for _, c := range s.Causes {
			b.WriteString("| " + c.Cause + " | `" + c.Look + "` | " + c.Then + " |\n")
		}
	}
	return b.String()
}
