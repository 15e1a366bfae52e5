// Package buildversion knows the version of the programs.
package buildversion

import "runtime/debug"

// linked is set by the linker (-X saltclusterd/cmd/buildversion.linked=...).
var linked string

// Get returns the version that the linker has set; of a plain go build, the one of the build information.
func Get() string {
	if linked != "" {
		return linked
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
