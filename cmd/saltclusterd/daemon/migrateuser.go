package daemon

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"saltclusterd/fsync/unshare"
	"saltclusterd/sidecar/adminapi"
)

// roomToWrite asks for the directory of the copies where this process, which need not run as root, may not make it; nil: it may.
func (g *migration) roomToWrite(p unshare.Plan, to string) *adminapi.MigrateByHand {
	who := strconv.Itoa(os.Geteuid())
	if u, err := user.LookupId(who); err == nil {
		who = u.Username
	}
	ask := &adminapi.MigrateByHand{Why: fmt.Sprintf("saltclusterd runs as %s and may not write there", who)}
	asked := map[string]bool{}
	for _, t := range p.Trees {
		dir := g.d.migrateTo(to)
		if t.Link != "" {
			dir = filepath.Dir(t.To)
		}
		if asked[dir] || unshare.MayMake(dir) {
			continue
		}
		asked[dir] = true
		ask.Commands = append(ask.Commands, fmt.Sprintf("install -d -o %s -m 0750 %s", who, dir))
	}
	if len(ask.Commands) == 0 {
		return nil
	}
	return ask
}
