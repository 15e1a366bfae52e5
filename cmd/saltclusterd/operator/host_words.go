package operator

import "saltclusterd/cmd/saltclusterd/wording"

// HostWords returns what puts the commands of this host in the place of systemd's. What manages services here is looked
// for once: health checks say something every second.
func HostWords() func(text string) string { return wording.HostServices().Adapt }
