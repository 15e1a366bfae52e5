package localmaster

// DropInName is the file the sidecar generates in the master's default_include directory. It sorts late, so that it
// wins over what was there before.
const DropInName = "zz-saltclusterd.conf"

// DropInOptions says what goes into the drop-in.
type DropInOptions struct {
	Interface string // loopback address the master binds
	MasterID  string // this node's id
	Version   Version
}

// Finding is one thing about the master's configuration that an operator should know.
type Finding struct {
	Option  string // the option concerned
	Fatal   bool   // the cluster cannot work like this
	Message string // a sentence: what is wrong
	Fix     string // a sentence: what to type
}

// WriteDropIn writes the drop-in unless it is there already with the same content.
func WriteDropIn(path string, o DropInOptions) (changed bool, err error) { return false, nil }

// CheckDropIn lists everything in the effective configuration that must not stay like this behind the sidecar.
func CheckDropIn(cfg *Config) []Finding { return nil }
