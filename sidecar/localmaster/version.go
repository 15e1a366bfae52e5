package localmaster

import "context"

// Version is a Salt release: Major 3006, Minor 28.
type Version struct {
	Major, Minor int
	Text         string // as printed, e.g. "3006.28"
}

// ParseVersion reads "3006.28", "salt-master 3006.28 (Sulfur)" or a line of --versions-report.
func ParseVersion(text string) (Version, error) { return Version{}, nil }

// DetectVersion asks the salt-master command (split at blanks, run without a shell) for its version.
func DetectVersion(ctx context.Context, saltMasterCmd string) (Version, error) {
	return Version{}, nil
}

// Supported reports whether this release line is one the sidecar knows.
func (v Version) Supported() bool { return v.Major >= 3006 && v.Major <= 3008 }

// String returns the version as printed by Salt.
func (v Version) String() string { return v.Text }
