package adminapi

// Version is the answer of GET /v1/version.
type Version struct {
	Node        string `json:"node"`
	Version     string `json:"version"` // of saltclusterd
	SaltVersion string `json:"salt_version,omitempty"`
	Go          string `json:"go"`
	API         int    `json:"api"` // APIVersion of the daemon
	PID         int    `json:"pid,omitempty"`
	Started     int64  `json:"started,omitempty"` // Unix time in ms; a program started in the place of another has its PID
}

// Config is the answer of GET /v1/config: the options the daemon runs with.
type Config struct {
	Files   []string       `json:"files"` // in the order they were read
	Options []ConfigOption `json:"options"`
}

// ConfigOption is one option, its value and where the value comes from.
type ConfigOption struct {
	Name   string `json:"name"`
	Value  any    `json:"value"`  // "[redacted]" for a secret that is set
	Source string `json:"source"` // "default" or "file:line"
}
