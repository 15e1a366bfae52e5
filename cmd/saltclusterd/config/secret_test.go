package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"saltclusterd/integration/check"
	"saltclusterd/integration/require"
)

func TestSecretRules(t *testing.T) {
	tests := []struct{ name, line, want string }{
		{"good", "cluster_secret: " + goodSecret, ""},
		{"good in quotes", "cluster_secret: '" + goodSecret + "'", ""},
		{"missing", "", "cluster_secret: is not set: any host could join"},
		{"null", "cluster_secret:", "cluster_secret: is empty"},
		{"empty", "cluster_secret: ''", "cluster_secret: is empty: any host could join"},
		{"blank", "cluster_secret: '      '", "cluster_secret: is empty"},
		{"short", "cluster_secret: hunter2", "cluster_secret: has 7 characters, at least 22 random ones"},
		{"repeated", "cluster_secret: " + strings.Repeat("abc", 12), "cluster_secret: repeats a few characters"},
		{"list", "cluster_secret: [hunter2]", "cluster_secret: is a list"},
		{"anchor", "cluster_secret: *hunter2", "is not valid YAML"},
		{"broken quote", "cluster_secret: 'hunter2", "is not valid YAML"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := loadTest(write(t, map[string]string{"saltclusterd": "cluster_id: lab\n" + tt.line + "\n"}), nil)
			if tt.want == "" {
				check.NoError(t, err)
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error:\n%v\nshould contain:\n%s", err, tt.want)
			}
		})
	}
}

func TestLoad_SecretWorldReadable(t *testing.T) {
	path := write(t, map[string]string{"saltclusterd": "cluster_id: lab\ncluster_secret: " + goodSecret + "\n"})
	require.NoError(t, os.Chmod(path, 0o644))
	_, err := loadTest(path, nil)
	if want := path + ":2: cluster_secret: is in a file that everyone may read (chmod o-rwx " + path + ")"; err == nil ||
		err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestSecretFiles(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
		require.NoError(t, os.Chmod(path, mode))
		return path
	}
	put("cluster_secret", goodSecret+"\n", 0o400)
	put("open", goodSecret, 0o644)
	put("short", "hunter2", 0o600)
	put("lines", "hunter2\nhunter3\n", 0o600)
	env := map[string]string{"CREDENTIALS_DIRECTORY": dir, "EMPTY": ""}
	tests := []struct {
		name, text string
		env        map[string]string
		want       string
	}{
		{"file", "cluster_secret_file: " + dir + "/cluster_secret", nil, ""},
		{"credential named", "cluster_secret_file: ${CREDENTIALS_DIRECTORY}/cluster_secret", env, ""},
		{"credential found", "", env, ""},
		{"no such credential", "", map[string]string{"CREDENTIALS_DIRECTORY": t.TempDir()}, "cluster_secret: is not set"},
		{"configuration before credential", "cluster_secret: " + goodSecret, map[string]string{"CREDENTIALS_DIRECTORY": "/x"},
			""},
		{"both", "cluster_secret: " + goodSecret + "\ncluster_secret_file: " + dir + "/short", nil,
			"is set beside cluster_secret"},
		{"unset variable", "cluster_secret_file: ${EMPTY}/x", env, "uses ${EMPTY}, which is not in the environment"},
		{"relative", "cluster_secret_file: secret", nil, "is not an absolute path"},
		{"missing", "cluster_secret_file: /nonexistent", nil, "/nonexistent cannot be read: no such file"},
		{"open", "cluster_secret_file: " + dir + "/open", nil, "may be read by everyone"},
		{"short", "cluster_secret_file: " + dir + "/short", nil, ":2: cluster_secret_file: has 7 characters"},
		{"lines", "cluster_secret_file: " + dir + "/lines", nil, "has more than one line"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := loadTest(write(t, map[string]string{"saltclusterd": "cluster_id: lab\n" + tt.text + "\n"}), tt.env)
			if tt.want == "" {
				if err != nil || c.Cluster.Secret.Reveal() != goodSecret {
					t.Errorf("%v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter") ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("error:\n%v\nshould contain only:\n%s", err, tt.want)
			}
		})
	}
}

// What a credential brings is told by its own name, once, and does not differ from what stands in the files.
func TestCredentialIsNamed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "cluster_secret")
	main := write(t, map[string]string{"saltclusterd": "cluster_id: lab\n"})
	for _, tt := range []struct {
		text string
		mode os.FileMode
		want string
	}{
		{goodSecret, 0o644, path + ": cluster_secret_file: " + path + " may be read by everyone: chmod o-rwx " + path},
		{"hunter2", 0o600, path + ": cluster_secret_file: has 7 characters"},
		{goodSecret, 0o600, ""},
	} {
		require.NoError(t, errors.Join(os.WriteFile(path, []byte(tt.text), tt.mode), os.Chmod(path, tt.mode)))
		c, err := loadTest(main, map[string]string{"CREDENTIALS_DIRECTORY": dir})
		if tt.want != "" {
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got\n%v\nwant only\n%s", err, tt.want)
			}
			continue
		}
		require.NoError(t, err)
		for _, o := range c.Show().Options {
			switch {
			case o.Name == "cluster_secret" && o.Source != path:
				t.Errorf("the secret's source is %q", o.Source)
			case o.Name == "cluster_secret_file" && (o.Value != "" || o.Source != path):
				t.Errorf("%+v", o)
			}
		}
	}
}

func TestSecretNeverPrints(t *testing.T) {
	c, err := loadText(t, "")
	require.NoError(t, err)
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		fmt.Fprintf(&out, verb+"\n", c)
		fmt.Fprintf(&out, verb+"\n", c.Cluster.Secret)
		fmt.Fprintf(&out, verb+"\n", *c)
	}
	for _, encode := range []func(any) ([]byte, error){json.Marshal, yaml.Marshal} {
		for _, v := range []any{c, c.Show(), c.Cluster.Secret} {
			data, err := encode(v)
			require.NoError(t, err)
			out.Write(data)
		}
	}
	slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "config", c, "secret", c.Cluster.Secret)
	text := out.String()
	if strings.Contains(text, goodSecret) || strings.Contains(text, fmt.Sprintf("%x", goodSecret)) {
		t.Error("the secret was printed")
	}
	if !strings.Contains(text, "[redacted]") {
		t.Error("nothing shows that there is a secret")
	}
}

func TestJoinToken(t *testing.T) {
	const token = "sct1.k7m2q9x4ab.AAECAwQFBgcICQoLDA0ODw.n4bQgYhMfWWaL-qgxVrQFaO_TxsrC4Is0V1sFbDwCgg"
	dir := t.TempDir()
	put := func(name, text string, mode os.FileMode) {
		path := filepath.Join(dir, name)
		require.NoError(t, errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)))
	}
	put("cluster_join_token", token+"\n", 0o400)
	put("open", token, 0o644)
	put("cut", token[:len(token)-1], 0o600)
	env := map[string]string{"CREDENTIALS_DIRECTORY": dir}
	for _, tt := range []struct {
		name, text string
		env        map[string]string
		token      bool
		want       string
	}{
		{"file", "cluster_join_token_file: " + dir + "/cluster_join_token", nil, true, ""},
		{"credential", "", env, true, ""},
		{"beside a secret", "cluster_secret: " + goodSecret, env, true, ""},
		{"used up and removed", "cluster_join_token_file: " + dir + "/gone", nil, false, ""},
		{"open", "cluster_join_token_file: " + dir + "/open", nil, false, "may be read by everyone"},
		{"cut off", "cluster_join_token_file: " + dir + "/cut", nil, false, "is it complete"},
		{"relative", "cluster_join_token_file: token", nil, false, "is not an absolute path"},
		{"a short secret is no better for it", "cluster_secret: hunter2", env, true, "has 7 characters"},
	} {
		c, err := loadTest(write(t, map[string]string{"saltclusterd": "cluster_id: lab\n" + tt.text + "\n"}), tt.env)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if tt.want == "" && c.Cluster.JoinToken().IsSet() != tt.token {
			t.Errorf("%s: token %v", tt.name, c.Cluster.JoinToken().IsSet())
		}
		if out := fmt.Sprintf("%+v %v", c, c.Show()); strings.Contains(out, "AAECAw") || err != nil &&
			strings.Contains(err.Error(), "AAECAw") {
			t.Errorf("%s: the token was printed", tt.name)
		}
	}
}
