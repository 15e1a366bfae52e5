package tlsconfig

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math"
	"slices"
	"time"

	"saltclusterd/sidecar/localmaster"
)

// renewBefore is how long before its end a certificate should be renewed, and at most a third of its life.
const renewBefore = 30 * 24 * time.Hour

// Examine lists what is wrong with loaded certificates at a time; what makes minions lose their connection first. A
// fatal finding is one with which minions that check certificates, or those with a certificate of their own, are
// refused.
func (l *Loaded) Examine(now time.Time) (out []localmaster.Finding) {
	out = append(out, examineDates("certfile", l.Leaf, now,
		"minions that check it (3008, or cert_reqs: CERT_REQUIRED on them) refuse this node")...)
	if u := l.Leaf.ExtKeyUsage; len(u) > 0 && !slices.Contains(u, x509.ExtKeyUsageServerAuth) &&
		!slices.Contains(u, x509.ExtKeyUsageAny) {
		out = append(out, localmaster.Finding{Option: option, Fatal: true,
			Message: "The certificate in ssl certfile is not for servers (extended key usage): minions that check it refuse this node.",
			Fix:     "Have one issued with serverAuth."})
	}
	if len(l.Leaf.IPAddresses) == 0 {
		out = append(out, localmaster.Finding{Option: option,
			Message: "The certificate in ssl certfile names no IP address. Minions that verify it look for the address that their option " +
				"master resolves to, and refuse this node.",
			Fix: "Have one issued with the addresses of the load balancer and of this node among its subject alternative names."})
	}
	if l.Config.ClientAuth != tls.NoClientCert {
		if ca := lastCA(l.CAs); ca != nil {
			out = append(out, examineDates("ca_certs", ca, now, "certificates of minions are refused")...)
		}
	}
	return out
}

// lastCA is the CA that is valid longest; nil: there is none.
func lastCA(cas []*x509.Certificate) (last *x509.Certificate) {
	for _, ca := range cas {
		if last == nil || ca.NotAfter.After(last.NotAfter) {
			last = ca
		}
	}
	return last
}

// examineDates says whether a certificate is valid, and for how much longer.
func examineDates(key string, c *x509.Certificate, now time.Time, so string) []localmaster.Finding {
	left := c.NotAfter.Sub(now)
	day := func(t time.Time) string { return t.UTC().Format(time.DateOnly) }
	switch early := min(renewBefore, c.NotAfter.Sub(c.NotBefore)/3); {
	case now.Before(c.NotBefore):
		return []localmaster.Finding{{Option: option, Fatal: true,
			Message: fmt.Sprintf("The certificate in ssl %s is not valid before %s: %s.", key, c.NotBefore.UTC().Format(time.RFC3339),
				so),
			Fix: "Check this host's clock; if it is right, install a certificate that is valid now."}}
	case left <= 0:
		return []localmaster.Finding{{Option: option, Fatal: true,
			Message: fmt.Sprintf("The certificate in ssl %s has expired on %s: %s.", key, day(c.NotAfter), so),
			Fix:     "Write a new one to its file; it is read within seconds."}}
	case left < early:
		return []localmaster.Finding{{Option: option,
			Message: fmt.Sprintf("The certificate in ssl %s expires in %.0f days, on %s: then %s.", key,
				math.Floor(left.Hours()/24), day(c.NotAfter), so),
			Fix: "Write a new one to its file; it is read within seconds."}}
	}
	return nil
}
