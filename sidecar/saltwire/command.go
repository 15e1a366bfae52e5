package saltwire

// commandName turns the bytes of a command into a string, without allocating for those Salt has. It is not an
// allow-list: that is the router's table.
func commandName(b []byte) string {
	for _, known := range commandNames {
		if string(b) == known {
			return known
		}
	}
	return string(b)
}

// commandNames are the commands of salt/master.py:AESFuncs and ClearFuncs, the busiest first.
var commandNames = [...]string{
	"_return", "_pillar", "_minion_event", "_serve_file", "_file_hash", "_file_find", "_mine", "_mine_get",
	"_master_opts", "_master_tops", "_file_list", "_file_hash_and_stat", "_file_list_emptydirs", "_dir_list",
	"_symlink_list", "_file_envs", "_file_recv", "_syndic_return", "_mine_delete", "_mine_flush", "pub_ret",
	"minion_pub", "minion_publish", "minion_runner", "revoke_auth", "verify_minion", "_register_resources",
	"ping", cmdAuth, "publish", "get_token", "mk_token", "wheel", "runner",
}
