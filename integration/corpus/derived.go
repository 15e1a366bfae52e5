package corpus

import "saltclusterd/sidecar/saltwire"

// Derived are requests for commands that masters answer and no minion of the supported versions sends, so that none
// could be recorded, made from some that are alike: `_file_hash_and_stat` is what RemoteClient.hash_and_stat_file was
// once meant to send; it asks `_file_hash` and `_file_find` in all of them.
func (c *Corpus) Derived() (out []Request) {
	for _, r := range c.Requests {
		if r.Cmd == "_file_hash" {
			out = append(out, r.as("_file_hash_and_stat"))
		}
	}
	return out
}

// as is the same request for another command.
func (r Request) as(cmd string) Request {
	fields := fieldsOf(r.Load)
	for i, f := range fields {
		if string(f.key) == "cmd" {
			fields[i].value = saltwire.AppendRaw(nil, cmd)
		}
	}
	return Request{Cmd: cmd, Load: pack(fields)}
}
