package operator

import "saltclusterd/cmd/saltclusterd/wording"

// AdaptToHost puts the commands of this host in the place of systemd's.
func AdaptToHost(text string) string { return wording.HostServices().Adapt(text) }
