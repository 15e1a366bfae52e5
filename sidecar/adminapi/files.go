package adminapi

// Files says how a node answers minions that ask for files.
type Files struct {
	Path   string `json:"path"`             // native, or master (its own file server)
	Reason string `json:"reason,omitempty"` // why the salt-master gets all or some requests for files
}
