package hostile

import "saltclusterd/sidecar/router"

// kind is what a field is about.
type kind uint8

const (
	aText kind = iota
	anID
	aJid
	noJobsJid
	aTag
	aPath
	pathParts // of _file_recv
	anEnv
	aFunction
	arguments
	aTarget
	aTargetType
	someData
	eventList
	returnList
	returnMap
	aNumber
	aFlag
	aNode
	aToken
	grains
	resources
	resourceGrains
	aPretag
	configuration
	pillarExt
	stateRun
	failedStates
	aRetcode
	aUser
	aKey // a public key
)

// field of a request; sometimes says that a well-meant request may lack it.
type field struct {
	name      string
	kind      kind
	sometimes bool
}

// shape is a command with what masters of any of the versions look at in it (salt/master.py, salt/daemons/masterapi.py,
// salt/fileserver/__init__.py, salt/channel/server.py).
type shape struct {
	cmd    string
	class  router.Class
	weight int // how often; 0: as often as any
	fields []field
}

var file = []field{{"path", aPath, false}, {"saltenv", anEnv, false}, {"loc", aNumber, false}, {"gzip", aNumber, true},
	{"env", anEnv, true}}

var listing = []field{{"saltenv", anEnv, false}, {"prefix", aPath, true}, {"env", anEnv, true}}

var publish = []field{
	{"fun", aFunction, false}, {"arg", arguments, false}, {"tgt", aTarget, false}, {"ret", aText, false},
	{"tgt_type", aTargetType, true},
	{"timeout", aNumber, true}, {"tmo", aNumber, true}, {"form", aText, true}, {"user", aUser, true},
	{"no_parse", arguments, true},
	{"jid", aJid, true},
}

var shapes = []shape{
	{"_return", router.AES, 4, []field{
		{"jid", aJid, false}, {"return", someData, false}, {"retcode", aNumber, true}, {"success", aFlag, true},
		{"fun", aFunction, false},
		{"fun_args", arguments, true}, {"out", aText, true}, {"master_id", aNode, true}, {"nocache", aFlag, true},
		{"metadata", someData, true},
		{"schedule", aText, true}, {"resource_id", anID, true}, {"resource_type", aText, true}, {"minions", aTarget, true},
		{"user", aUser, true},
		{"tgt", aTarget, true}, {"load", someData, true}, {"sig", aToken, true},
	}},
	// with no more than a minion says: with all of the above there is nearly always something else that it is refused for
	{"_return", router.AES, 3, []field{
		{"jid", noJobsJid, false}, {"return", someData, false}, {"retcode", aNumber, false}, {"success", aFlag, false},
		{"fun", aFunction, false},
		{"fun_args", arguments, false},
	}},
	{"_return", router.AES, 3, []field{
		{"jid", noJobsJid, false}, {"return", failedStates, false}, {"retcode", aRetcode, false}, {"fun", stateRun, false},
		{"user", aUser, true},
	}},
	{"_syndic_return", router.AES, 2, []field{
		{"load", returnList, true}, {"jid", aJid, true}, {"return", returnMap, true}, {"fun", aFunction, true},
		{"master_id", aNode, true},
		{"out", aText, true}, {"fun_args", arguments, true},
	}},
	{"pub_ret", router.AES, 0, []field{{"jid", aJid, false}}},
	{"minion_pub", router.AES, 0, publish},
	{"minion_publish", router.AES, 0, publish},
	{"minion_runner", router.AES, 0, []field{{"fun", aFunction, false}, {"arg", arguments, false}, {"tgt", aTarget, true},
		{"no_parse", arguments, true}}},
	{"_minion_event", router.AES, 5, []field{
		{"tag", aTag, true}, {"data", someData, true}, {"events", eventList, true}, {"pretag", aPretag, true},
		{"minions", aTarget, true}, {"jid", aJid, true},
		{"resource_id", anID, true}, {"return", someData, true}, {"error", aText, true},
	}},
	{"_mine", router.AES, 2, []field{{"data", someData, false}, {"clear", aFlag, true}}},
	{"_mine_get", router.AES, 0, []field{{"tgt", aTarget, false}, {"fun", aFunction, false},
		{"tgt_type", aTargetType, true}, {"expr_form", aTargetType, true}}},
	{"_mine_delete", router.AES, 0, []field{{"fun", aFunction, false}}},
	{"_mine_flush", router.AES, 0, nil},
	{"_register_resources", router.AES, 2, []field{{"resources", resources, false},
		{"resource_grains", resourceGrains, true}}},
	{"_pillar", router.AES, 0, []field{
		{"grains", grains, false}, {"saltenv", anEnv, true}, {"pillarenv", anEnv, true}, {"pillar_override", someData, true},
		{"ver", aText, true},
		{"ext", pillarExt, true}, {"extra_minion_data", someData, true}, {"clean_cache", aFlag, true}, {"env", anEnv, true},
	}},
	{"_master_opts", router.AES, 0, []field{{"env_only", aFlag, true}}},
	{"_master_tops", router.AES, 0, []field{{"opts", configuration, true}}},
	{"verify_minion", router.AES, 0, []field{{"id_", anID, false}, {"token", aToken, false}}},
	{"_serve_file", router.AES, 3, file},
	{"_file_find", router.AES, 0, file},
	{"_file_hash", router.AES, 0, file},
	{"_file_hash_and_stat", router.AES, 0, file},
	{"_file_list", router.AES, 0, listing},
	{"_file_list_emptydirs", router.AES, 0, listing},
	{"_dir_list", router.AES, 0, listing},
	{"_symlink_list", router.AES, 0, listing},
	{"_file_envs", router.AES, 0, listing},
	{"_file_recv", router.AES, 3, []field{{"path", pathParts, false}, {"loc", aNumber, false}, {"data", aText, false},
		{"size", aNumber, true}}},

	{"_auth", router.Clear, 0, []field{
		{"id", anID, false}, {"pub", aKey, false}, {"nonce", aText, false}, {"enc_algo", aText, false},
		{"sig_algo", aText, false}, {"token", aToken, true},
		{"autosign_grains", someData, true},
	}},
	{"ping", router.Clear, 0, []field{{"data", someData, true}}},
	{"publish", router.Clear, 0, append([]field{{"key", aToken, true}, {"token", aToken, true}, {"eauth", aText, true},
		{"username", aUser, true}}, publish...)},
	{"runner", router.Clear, 0, []field{{"fun", aFunction, false}, {"kwarg", someData, true}, {"key", aToken, true},
		{"token", aToken, true}, {"eauth", aText, true}}},
	{"wheel", router.Clear, 0, []field{{"fun", aFunction, false}, {"match", anID, true}, {"key", aToken, true},
		{"token", aToken, true}, {"eauth", aText, true}}},
	{"mk_token", router.Clear, 0, []field{{"eauth", aText, false}, {"username", aUser, false}, {"password", aText, true},
		{"token", aText, true}}},
	{"get_token", router.Clear, 0, []field{{"token", aPath, false}}},
}

// notCommands are names that masters have for other things, or not at all.
var notCommands = []string{
	"_auth ", "run_func", "__init__", "__class__", "_prep_auth_info", "_prep_pub", "_send_pub", "opts", "fs_", "event",
	"masterapi", "destroy",
	"connect", "_handle_minion_event", "publish_auth", "", "_AESFuncs__verify_minion", "\xff\xfe",
}

// revokeAuth is left to the end: the minion that sends it has no accepted key any more.
var revokeAuth = shape{"revoke_auth", router.AES, 0, []field{{"preserve_minion_cache", aFlag, true}}}
