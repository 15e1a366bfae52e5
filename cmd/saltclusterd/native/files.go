package native

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"

	"saltclusterd/sidecar/adminapi"
	"saltclusterd/sidecar/fileserve"
	"saltclusterd/sidecar/localmaster"
)

// useFiles chooses how requests for files are answered beside a master of that configuration.
func (s *Service) useFiles(master *localmaster.Config) {
	set, reason := s.fileSettings(master)
	if reason != "" {
		s.c.Logger.Info("requests for files are left to the salt-master", "reason", reason)
	}
	s.Files.Use(set, reason)
	s.fileOptions = master
}

func (s *Service) fileSettings(master *localmaster.Config) (*fileserve.Settings, string) {
	if !s.c.NativeFiles {
		return nil, "the option cluster_native_files is off"
	}
	if reason := otherUser(master.User); reason != "" {
		return nil, reason
	}
	if master.Globbed("file_roots") {
		return nil, "file_roots has wildcards: the order in which Salt found the directories is not known"
	}
	set, reason := fileserve.Native(master, master.Version.Major)
	if set != nil {
		mounts, _ := os.ReadFile("/proc/self/mountinfo") // without it nothing is hidden, as outside of systemd
		set.Hidden = privateDirs(string(mounts))
	}
	return set, reason
}

// privateDirs lists the temporary directories that systemd has made for this service alone (PrivateTmp=). The generator
// turns that off when a root is in one, but not when a link in a root leads to one.
func privateDirs(mounts string) (dirs []string) {
	for line := range strings.Lines(mounts) {
		f := strings.Fields(line)
		if len(f) > 4 && (f[4] == "/tmp" || f[4] == "/var/tmp") && strings.Contains(f[3], "/systemd-private-") {
			dirs = append(dirs, f[4])
		}
	}
	return dirs
}

// otherUser returns a reason when the master may read other files than this process.
func otherUser(name string) string {
	u, err := user.Lookup(name)
	if err != nil {
		return fmt.Sprintf("cannot look up the account in the master's option user: %v", err)
	}
	if u.Uid != strconv.Itoa(os.Geteuid()) {
		return fmt.Sprintf("the salt-master runs as %s, saltclusterd does not: they may read different files", name)
	}
	return ""
}

// followFiles follows a configuration of the master. Modules of the site are not options, so it also asks whether
// files are served natively.
func (s *Service) followFiles(now *localmaster.Config) {
	set, reason := s.fileSettings(now)
	native, before := s.Files.Native()
	if native == (set != nil) && before == reason && fileserve.Same(now, s.fileOptions) {
		return
	}
	s.useFiles(now)
}

// ServedFiles are the files while this node can vouch for them (sidecar.Files).
type ServedFiles struct{ Service *Service }

// Takes implements sidecar.Files.
func (f ServedFiles) Takes(cmd string) bool {
	return f.Service.Files.Takes(cmd) && f.Service.c.FilesCurrent()
}

// Reads implements sidecar.Files.
func (f ServedFiles) Reads(cmd string, load []byte) bool { return f.Service.Files.Reads(cmd, load) }

// Answer implements sidecar.Files.
func (f ServedFiles) Answer(ctx context.Context, cmd, minion string, load []byte, finish func([]byte)) error {
	return f.Service.Files.Answer(ctx, cmd, minion, load, finish)
}

// FilesStatus describes how requests for files are answered.
func (s *Service) FilesStatus() *adminapi.Files {
	ok, reason := s.Files.Native()
	if !ok {
		return &adminapi.Files{Path: adminapi.PathMaster, Reason: reason}
	}
	out := &adminapi.Files{Path: adminapi.PathNative}
	if set := s.Files.Settings(); set != nil && !set.Alone {
		out.Reason = "requests that roots cannot answer go to the salt-master, because fileserver_backend names other backends"
	}
	return out
}
