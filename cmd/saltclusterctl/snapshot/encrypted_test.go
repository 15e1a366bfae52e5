package snapshot

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"saltclusterd/consensus/archive"
	"saltclusterd/integration/require"
)

func TestWriteSnapshot(t *testing.T) {
	header, content := archive.Header{ClusterID: "lab", Node: "m1"}, archive.Content{Private: []byte("PRIVATE"),
		Public: []byte("PUBLIC"), State: []byte("STATE")}
	for _, passphrase := range []string{"", "correct horse"} {
		var file bytes.Buffer
		require.NoError(t, writeSnapshot(&file, header, content, passphrase, 10))
		if hidden := !bytes.Contains(file.Bytes(), []byte("PRIVATE")); hidden != (passphrase != "") {
			t.Errorf("passphrase %q: private key hidden: %t", passphrase, hidden)
		}
		plain, encrypted, err := decryptSnapshot(&file, passphrase)
		if err != nil || encrypted != (passphrase != "") {
			t.Fatalf("passphrase %q: encrypted %t, %v", passphrase, encrypted, err)
		}
		if _, got, err := archive.Read(plain); err != nil || !reflect.DeepEqual(got, content) {
			t.Errorf("passphrase %q: read %+v, %v", passphrase, got, err)
		}
	}
}

func TestDecryptSnapshot_Refuses(t *testing.T) {
	var file bytes.Buffer
	if err := writeSnapshot(&file, archive.Header{}, archive.Content{Private: []byte("PRIVATE")}, "correct horse",
		10); err != nil {
		t.Fatal(err)
	}
	costly := strings.Replace(file.String(), " 10\n", " 30\n", 1)
	for _, test := range []struct {
		name, file, passphrase string
		want                   error
	}{
		{"no passphrase", file.String(), "", errNeedsPassphrase},
		{"another passphrase", file.String(), "battery staple", errPassphrase},
		{"a work factor that takes hours", costly, "correct horse", errPassphrase},
		{"cut in its header", file.String()[:40], "correct horse", errPassphrase},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, _, err := decryptSnapshot(strings.NewReader(test.file), test.passphrase); !errors.Is(err, test.want) {
				t.Errorf("%v, want %v", err, test.want)
			}
		})
	}
	plain, _, err := decryptSnapshot(strings.NewReader(file.String()[:file.Len()-5]), "correct horse")
	require.NoError(t, err)
	if _, _, err := archive.Read(plain); err == nil {
		t.Error("a file that was cut is read")
	}
}
