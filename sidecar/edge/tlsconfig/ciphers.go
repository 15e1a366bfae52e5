package tlsconfig

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
)

// suites are the suites of TLS 1.2 that crypto/tls offers, by OpenSSL's names.
var suites = map[string]uint16{
	"ECDHE-ECDSA-AES128-GCM-SHA256": tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
	"ECDHE-ECDSA-AES256-GCM-SHA384": tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	"ECDHE-ECDSA-CHACHA20-POLY1305": tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	"ECDHE-ECDSA-AES128-SHA":        tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA,
	"ECDHE-ECDSA-AES256-SHA":        tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA,
	"ECDHE-RSA-AES128-GCM-SHA256":   tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	"ECDHE-RSA-AES256-GCM-SHA384":   tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	"ECDHE-RSA-CHACHA20-POLY1305":   tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	"ECDHE-RSA-AES128-SHA":          tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA,
	"ECDHE-RSA-AES256-SHA":          tls.TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA,
}

// absent are words for suites of which crypto/tls offers none.
var absent = []string{"aNULL", "eNULL", "NULL", "ADH", "AECDH", "EXP", "EXPORT", "LOW", "MEDIUM", "MD5", "RC2", "RC4",
	"DES", "3DES", "IDEA", "SEED", "CAMELLIA", "ARIA", "PSK", "SRP", "DSS", "aDSS", "RSA", "kRSA", "DH", "EDH", "DHE",
	"kDHE", "kEDH", "CBC3", "AESCCM", "SHA256", "SHA384", "SSLv2", "SSLv3"}

// hasWord says whether a suite belongs to a word of OpenSSL's cipher strings; known is false for a word that is none.
func hasWord(suite, word string) (has, known bool) {
	parts := strings.Split(suite, "-")
	switch word {
	case "ALL", "DEFAULT", "HIGH", "ECDH", "ECDHE", "EECDH", "kECDHE", "kEECDH":
		return true, true
	case "aRSA":
		return parts[1] == "RSA", true
	case "aECDSA", "ECDSA":
		return parts[1] == "ECDSA", true
	case "AES":
		return strings.HasPrefix(parts[2], "AES"), true
	case "AES128", "AES256", "CHACHA20":
		return parts[2] == word, true
	case "AESGCM":
		return slices.Contains(parts, "GCM"), true
	case "SHA", "SHA1":
		return parts[len(parts)-1] == "SHA", true
	case "TLSv1.2":
		return parts[len(parts)-1] != "SHA", true
	}
	if _, isSuite := suites[word]; isSuite {
		return suite == word, true
	}
	return false, slices.Contains(absent, word)
}

// parseCiphers reads an OpenSSL cipher string: words joined with a plus, separated by colons, an exclamation mark or a
// minus before those that are taken away. The order says nothing: crypto/tls has its own.
func (p *parser) parseCiphers(text string) {
	chosen, banned := map[string]bool{}, map[string]bool{}
	var unknown []string
	for _, token := range strings.FieldsFunc(text, func(r rune) bool { return r == ':' || r == ',' || r == ' ' }) {
		if token == "@STRENGTH" || strings.HasPrefix(token, "TLS_") { // those of TLS 1.3 are not chosen here
			continue
		}
		name := strings.TrimLeft(token, "!-+")
		add, ban := name == token, strings.HasPrefix(token, "!")
		remove := ban || strings.HasPrefix(token, "-")
		words := strings.Split(name, "+")
		for _, word := range words {
			if _, known := hasWord("ECDHE-RSA-AES128-SHA", word); !known {
				unknown = append(unknown, word)
			}
		}
		for suite := range suites {
			if !slices.ContainsFunc(words, func(word string) bool { has, _ := hasWord(suite, word); return !has }) {
				banned[suite] = banned[suite] || ban
				chosen[suite] = (chosen[suite] || add) && !remove && !banned[suite]
			}
		}
	}
	for suite, is := range chosen {
		if is {
			p.o.Ciphers = append(p.o.Ciphers, suites[suite])
		}
	}
	slices.Sort(p.o.Ciphers)
	if len(p.o.Ciphers) == 0 {
		p.refuse("ciphers", "leaves no cipher that saltclusterd supports", "Remove it, or add ECDHE+AESGCM.")
	} else if len(unknown) > 0 {
		p.warn("ciphers", fmt.Sprintf("has %q, which saltclusterd does not support: it offers the others", unknown),
			"Remove them; for TLS 1.3 nothing has to be set.")
	}
}
