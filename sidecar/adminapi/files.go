package adminapi

// Files says how a node answers minions that ask for files.
type Files struct {
	Path   string `json:"path"`             // PathNative or PathMaster
	Reason string `json:"reason,omitempty"` // why the salt-master gets them, or some of them
}
