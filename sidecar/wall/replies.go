package wall

// What stock masters answer to what they refuse or do not find, as msgpack.
var (
	replyNil    = []byte{0xc0}                           // events, returns
	replyFalse  = []byte{0xc2}                           // _file_recv
	replyMap    = []byte{0x80}                           // pub_ret, _symlink_list, _mine_get, minion_publish
	replyEmpty  = []byte{0xa0}                           // _file_hash
	replyList   = []byte{0x90}                           // lists of files
	replyFind   = []byte("\x82\xa4path\xa0\xa3rel\xa0")  // _file_find
	replyServe  = []byte("\x82\xa4data\xa0\xa4dest\xa0") // _serve_file
	replyRaised = []byte{0xa0}                           // any, when Python raises: what was to be text is none
	replyStat   = []byte("\x92\xa0\xc0")                 // _file_hash_and_stat
)

// notFound is what a master answers to a file request that finds nothing.
func notFound(cmd string) []byte {
	switch cmd {
	case "_file_find":
		return replyFind
	case "_serve_file":
		return replyServe
	case "_file_hash_and_stat":
		return replyStat
	case "_file_hash":
		return replyEmpty
	case "_symlink_list":
		return replyMap
	}
	return replyList
}
