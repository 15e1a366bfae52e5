package operator

import (
	"encoding/json"
	"strings"
	"testing"

	"saltclusterd/fsync/jobs"
)

// A job is shown as the files of a stock master have it, and so is a job of a runner.
func TestReadableJob(t *testing.T) {
	load := "\x84\xa3fun\xa8test.arg\xa3tgt\xa1*\xa4user\xa4root\xa3arg\x92\xa3one\x02"
	ran := "\x82\xa6return\x83\xa3fun\xaarunner.fun\xa4user\xa4root\xa8fun_args\x90\xa7success\xc3"
	for _, c := range []struct{ name, head, ret, want string }{
		{
			"published", load, "\x83\xa6return\x82\x01\xc4\x02hi\xa1b\xc4\x01\xff\xa7retcode\x00\xa7success\xc3",
			`{"jid":"1","node":"m2","function":"test.arg","arguments":["one",2],"target":"*","user":"root","minions":["web1"],` +
				`"returns":{"web1":{"return":{"1":"hi","b":"/w=="},"retcode":0,"success":true}}}`,
		},
		{
			"a runner's", "\x81\xa3jid\xa11", ran,
			`{"jid":"1","node":"m2","function":"runner.fun","arguments":[],"user":"root","minions":["web1"],"returns":{"web1":` +
				`{"return":{"fun":"runner.fun","fun_args":[],"user":"root"},"success":true}}}`,
		},
		{
			"odd values", "\xc1", "\x81\xa6return\x93\xd4\x4e\x00\xcb\x7f\xf8\x00\x00\x00\x00\x00\x01\xc0",
			`{"jid":"1","node":"m2","minions":["web1"],"returns":{"web1":{"return":["(a Python value that JSON does not have)","NaN",null]}}}`,
		},
		{"damaged", "", "\x81\xa6return", `{"jid":"1","node":"m2","minions":["web1"],"returns":{"web1":{"return":null}}}`},
	} {
		got, err := json.Marshal(readableJob(jobs.Job{
			JID: "1", From: "m2", Heads: map[string][]byte{".load.p": []byte(c.head), ".minions.p": []byte("\x91\xa4web1")},
			Returns: map[string]jobs.Return{"web1": {Data: []byte(c.ret)}},
		}))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n%s\nnot\n%s", c.name, err, got, c.want)
		}
	}
	if v := decodeMsgpack([]byte(strings.Repeat("\x91", 10_000) + "\xc0")); v != nil {
		t.Errorf("nested without end: %v", v)
	}
}

func FuzzDecodeMsgpack(f *testing.F) {
	f.Add([]byte("\x83\xa6return\x82\x01\xc4\x02hi\xa1b\xc4\x01\xff\xa7retcode\x00\xa7success\xc3"))
	f.Add([]byte("\xdd\xff\xff\xff\xff\x01"))
	f.Add([]byte("\xdf\xff\xff\xff\xff\x91\x01\x02"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if _, err := json.Marshal(decodeMsgpack(raw)); err != nil {
			t.Errorf("%q: %v", raw, err)
		}
	})
}
