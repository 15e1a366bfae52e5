package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"saltclusterd/gossip/node"
)

// The checks of the option table: each takes the value of one option and
// returns what is wrong with it, or "".

func oneOf(words ...string) func(any) (string, string) {
	return func(v any) (string, string) {
		s, _ := v.(string)
		if slices.Contains(words, s) {
			return "", ""
		}
		return fmt.Sprintf("%q is not one of %s", s, strings.Join(words, ", ")), didYouMean(s, words)
	}
}

func intBetween(low, high int) func(any) (string, string) {
	return func(v any) (string, string) {
		if n, _ := v.(int); n < low || n > high {
			return fmt.Sprintf("%d is not between %d and %d", n, low, high), ""
		}
		return "", ""
	}
}

func sizeBetween(low, high Size) func(any) (string, string) {
	return func(v any) (string, string) {
		if n, _ := v.(Size); n < low || n > high {
			return fmt.Sprintf("%s is not between %s and %s", n, low, high), ""
		}
		return "", ""
	}
}

func durationBetween(low, high time.Duration) func(any) (string, string) {
	return func(v any) (string, string) {
		if d, _ := v.(time.Duration); d < low || d > high {
			return fmt.Sprintf("%s is not between %s and %s", formatDuration(d), formatDuration(low), formatDuration(high)), ""
		}
		return "", ""
	}
}

func notEmpty(v any) (string, string) {
	if v.(string) == "" {
		return "is empty", ""
	}
	return "", ""
}

func checkAbsolute(v any) (string, string) {
	s := v.(string)
	if !filepath.IsAbs(s) {
		return fmt.Sprintf("%q is not an absolute path", s), ""
	}
	return "", ""
}

// maxSocketPath is what struct sockaddr_un holds besides its final NUL.
const maxSocketPath = 107

func socketPath(v any) (string, string) {
	s := v.(string)
	if msg, hint := checkAbsolute(s); msg != "" {
		return msg, hint
	}
	if len(s) > maxSocketPath {
		return fmt.Sprintf("the path of a unix socket has at most %d characters, this one %d", maxSocketPath, len(s)), ""
	}
	return "", ""
}

func ipAddress(v any) (string, string) {
	s := v.(string)
	if _, err := netip.ParseAddr(s); err != nil {
		return fmt.Sprintf("%q is not an IP address", s), ""
	}
	return "", ""
}

func listenOrEmpty(v any) (string, string) {
	s := v.(string)
	if s == "" {
		return "", ""
	}
	host, port, err := net.SplitHostPort(s)
	if err != nil || !validPort(port) {
		return fmt.Sprintf("%q is not address:port", s), "for example 0.0.0.0:4580"
	}
	if host != "" {
		return ipAddress(host)
	}
	return "", ""
}

// checkAdvertised goes into the roster, which holds addresses and no names.
func checkAdvertised(v any) (string, string) {
	s := v.(string)
	if s == "" {
		return "", ""
	}
	host, port, err := SplitHostPort(s, 1)
	if err != nil {
		return fmt.Sprintf("%q is not an IP address, with or without :port", s), "for example 10.0.0.11"
	}
	if _, err := node.ParseAddr(net.JoinHostPort(host, strconv.Itoa(port))); err != nil {
		return fmt.Sprintf("%q is not an address that other hosts can reach", s), "for example 10.0.0.11"
	}
	return "", ""
}

func everyHostPort(v any) (string, string) {
	for _, s := range v.([]string) {
		if s == "" {
			return "has an empty entry", ""
		}
		if _, _, err := SplitHostPort(s, 1); err != nil {
			return err.Error(), ""
		}
	}
	return "", ""
}

func checkFingerprint(v any) (string, string) {
	s := v.(string)
	if s == "" {
		return "", ""
	}
	if len(s) != 64 || strings.Trim(s, "0123456789abcdef") != "" {
		return fmt.Sprintf("%q is not a SHA-256 fingerprint of 64 hexadecimal digits", s),
			"on a member: sha256sum /etc/salt/pki/master/master.pub"
	}
	return "", ""
}

func validPort(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= 1 && n <= 65535
}

func didYouMean(s string, candidates []string) string {
	if c := Suggest(s, candidates); c != "" {
		return "did you mean " + c + "?"
	}
	return ""
}

// urlOrEmpty accepts an HTTP URL of a host and a path, or none. The URL is shown and logged, so it must not hold a user
// name or a secret.
func urlOrEmpty(v any) (string, string) {
	s := v.(string)
	if s == "" {
		return "", ""
	}
	const hint = "for example http://127.0.0.1:4318/v1/traces"
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Sprintf("%q is not an http or https URL", s), hint
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "it holds more than a host and a path", hint
	}
	return "", ""
}
