package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"saltclusterd/gossip/jointoken"
)

const (
	credentialName  = "cluster_secret"
	tokenCredential = "cluster_join_token"
	// storedCredentials is where the unit has systemd take them from; whoever checks the configuration by hand finds them
	// there.
	storedCredentials = "/etc/credstore/saltclusterd."
	generateSecret    = "head -c 24 /dev/urandom | base64"

	// A secret is guessed offline by whoever watches one proof from the
	// middle, so it must be random: 22 characters of base64 hold 132 bits.
	minSecret       = 22
	minSecretLetter = 6 // different characters; 22 random hex digits have fewer once in 10^7
)

// resolveSecret fills Cluster.Secret from cluster_secret_file or the systemd
// credential, unless the configuration holds it.
func (c *Config) resolveSecret(getenv func(string) string) Findings {
	_, inFile := c.places["cluster_secret"]
	file := c.Cluster.SecretFile
	c.written["cluster_secret_file"] = file
	if file == "" && !inFile {
		file = c.credentialFor(getenv, credentialName, "cluster_secret_file")
	}
	switch {
	case file == "":
		return nil
	case inFile:
		return Findings{c.newFinding("cluster_secret_file", "is set beside cluster_secret", "keep one of them")}
	}
	expanded, err := expandEnv(file, getenv)
	if err != nil {
		return Findings{c.newFinding("cluster_secret_file", err.Error(), "")}
	}
	secret, finding := c.readSecret(expanded)
	if finding != nil {
		return Findings{*finding}
	}
	c.Cluster.SecretFile = expanded
	c.Cluster.Secret = secret
	c.places["cluster_secret"] = place{file: expanded}
	return nil
}

func (c *Config) readSecret(file string) (Secret, *Finding) {
	secret, err := ReadSecretFile(file)
	if err == nil {
		return secret, nil
	}
	f := c.newFinding("cluster_secret_file", err.Error(), "")
	f.Denied = errors.Is(err, fs.ErrPermission)
	return Secret{}, &f
}

// ReadSecretFile returns the first line of a file that not everyone may read.
func ReadSecretFile(file string) (Secret, error) {
	data, mode, err := readFile(file)
	if err != nil {
		return Secret{}, fmt.Errorf("%s cannot be read: %w", file, withoutPath(err))
	}
	if mode&0o004 != 0 {
		return Secret{}, fmt.Errorf("%s may be read by everyone: chmod o-rwx %s", file, file)
	}
	first, rest, _ := bytes.Cut(data, []byte("\n"))
	if len(bytes.TrimSpace(rest)) > 0 {
		return Secret{}, fmt.Errorf("%s has more than one line; only the secret belongs there", file)
	}
	return NewSecret(string(bytes.TrimSpace(first))), nil
}

// JoinToken is the text of the configured join token; none when its file is
// gone.
func (c Cluster) JoinToken() Secret {
	if c.joinToken == nil {
		return Secret{}
	}
	return NewSecret(*c.joinToken)
}

// resolveJoinToken reads the token from cluster_join_token_file or the
// systemd credential. A file that is gone is not a mistake: the token is used
// up by then.
func (c *Config) resolveJoinToken(getenv func(string) string) Findings {
	const option = "cluster_join_token_file"
	file := c.Cluster.JoinTokenFile
	c.written[option] = file
	if file == "" {
		file = c.credentialFor(getenv, tokenCredential, option)
	}
	if file == "" {
		return nil
	}
	expanded, err := expandEnv(file, getenv)
	if err != nil {
		return Findings{c.newFinding(option, err.Error(), "")}
	}
	c.Cluster.JoinTokenFile = expanded
	if _, err := os.Stat(expanded); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	text, err := ReadSecretFile(expanded)
	if err == nil {
		_, err = jointoken.Parse(text.Reveal())
	}
	if err != nil {
		return Findings{c.newFinding(option, err.Error(), "make one on a member: saltclusterctl token create")}
	}
	token := text.Reveal()
	c.Cluster.joinToken = &token
	return nil
}

// credentialFor returns the path of a systemd credential, when there is one, and remembers that it takes the place of
// an option.
func (c *Config) credentialFor(getenv func(string) string, name, option string) string {
	path := credentialPath(getenv, name)
	if path != "" {
		c.places[option] = place{file: path}
	}
	return path
}

// credentialPath returns the path of a systemd credential, when there is one.
func credentialPath(getenv func(string) string, name string) string {
	if dir := getenv("CREDENTIALS_DIRECTORY"); dir != "" {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return ""
		}
		return path
	}
	if _, err := os.Stat(storedCredentials + name); err != nil { // not every user may look there
		return ""
	}
	return storedCredentials + name
}

// expandEnv replaces ${NAME} by the environment; an unset one is an error, for a
// path without it would be another file.
func expandEnv(path string, getenv func(string) string) (string, error) {
	var missing string
	out := os.Expand(path, func(name string) string {
		v := getenv(name)
		if v == "" && missing == "" {
			missing = name
		}
		return v
	})
	if missing != "" {
		return "", fmt.Errorf("uses ${%s}, which is not in the environment", missing)
	}
	if !filepath.IsAbs(out) {
		return "", fmt.Errorf("%q is not an absolute path", out)
	}
	return out, nil
}

// CheckSecret says what is wrong with a cluster secret, as the end of a
// sentence that names it.
func CheckSecret(s string) error {
	if msg, hint := checkSecret(s); msg != "" {
		return fmt.Errorf("%s (%s)", msg, hint)
	}
	return nil
}

// checkSecret judges a cluster secret without ever quoting it.
func checkSecret(s string) (msg, hint string) {
	s = strings.TrimSpace(s)
	hint = "make one for all nodes: " + generateSecret
	letters := map[rune]bool{}
	for _, r := range s {
		letters[r] = true
	}
	switch {
	case s == "":
		return "is empty: any host could join", hint
	case len(s) < minSecret:
		return fmt.Sprintf("has %d characters, at least %d random ones (128 bits) are needed", len(s), minSecret), hint
	case len(letters) < minSecretLetter:
		return "repeats a few characters and could be guessed", hint
	}
	return "", ""
}
