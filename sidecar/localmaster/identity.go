package localmaster

// InstallIdentity makes the cluster's key pair the master's own: master.pem (0400) and master.pub (0644) in pki_dir,
// or, on 3008, <id>.pem and <id>.pub with master.pem and master.pub as symlinks to them. Nothing is touched when the
// files hold the pair already; otherwise the former private key is kept beside as
// master.pem.saltclusterd-<timestamp>.bak (0400), whose path is returned. A running master must be restarted.
func InstallIdentity(cfg *Config, masterPEM, masterPub []byte) (changed bool, backup string, err error) {
	return false, "", nil
}

// ReadIdentity returns the master's current key pair. os.ErrNotExist when the master has never started.
func ReadIdentity(cfg *Config) (masterPEM, masterPub []byte, err error) { return nil, nil, nil }
