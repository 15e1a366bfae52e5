package jobcache

import (
	"testing"

	"saltclusterd/sidecar/localmaster"
)

type oneOption struct{ Options }

func (oneOption) Text(string) string { return "PKCS1v15-SHA224" }

func TestSignedBy(t *testing.T) {
	for text, want := range map[string]string{
		"3006.25": "PKCS1v15-SHA1", "3006.26": "PKCS1v15-SHA224", "3007.14": "PKCS1v15-SHA1", "3008.0": "",
		"3008.1": "PKCS1v15-SHA224",
	} {
		v, err := localmaster.ParseVersion(text)
		if got := signedBy(v, oneOption{}); err != nil || got != want {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}
