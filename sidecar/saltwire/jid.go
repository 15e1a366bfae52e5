package saltwire

// cutLen is the length of a job id without what unique_jid appends.
const cutLen = 20

// CutJID returns what a minion makes of a job id with unique_jid ("<20 digits>_<pid>") when it queues the job: it reads
// the id back from the name of a file, split at "_" (salt/minion.py). False: the id has no such suffix, and is not
// changed.
//
// What else of stock Salt takes ids apart (3006.28, 3007.15, 3008.3): salt/utils/jid.py reads the first 20 characters
// and lets a suffix pass; salt/utils/state.py splits names of queued files as above; these, and state.py of salt-ssh,
// compare ids as int(), which ignores "_", so that a longer suffix makes a later job.
func CutJID(jid string) (cut string, ok bool) {
	if len(jid) <= cutLen+1 || jid[cutLen] != '_' || !IsCutJID(jid[:cutLen]) {
		return "", false
	}
	return jid[:cutLen], true
}

// IsCutJID says whether a job id may be one that CutJID returns: 20 digits.
func IsCutJID(jid string) bool {
	if len(jid) != cutLen {
		return false
	}
	for _, c := range []byte(jid) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}
