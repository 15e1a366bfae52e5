package wording

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Services is what starts and stops programs on this host. The zero value is systemd.
type Services string

const (
	systemd     Services = ""
	openRC      Services = "openrc"
	runit       Services = "runit"
	noneManages Services = "none" // a container, or a manager that is not known
)

// servicesVariable says what manages services where that is not seen.
const servicesVariable = "SALTCLUSTER_SERVICE_MANAGER"

// HostServices is what manages services on this host.
func HostServices() Services { return findServices("/", os.Getenv(servicesVariable)) }

// findServices finds out what manages services, below the directory root.
func findServices(root, variable string) Services {
	switch variable {
	case "systemd":
		return systemd
	case string(openRC), string(runit), string(noneManages):
		return Services(variable)
	}
	for _, m := range []struct {
		path string
		is   Services
	}{
		{"run/systemd/system", systemd}, {"run/openrc", openRC}, {"run/runit", runit}, {"etc/runit", runit},
	} {
		if _, err := os.Stat(filepath.Join(root, m.path)); err == nil {
			return m.is
		}
	}
	return noneManages
}

// Runs says whether the commands of Adapt can be run; otherwise they are for people.
func (m Services) Runs() bool { return m != noneManages }

const unitNames = `salt-master|saltclusterd|salt-minion|haproxy`

var (
	// reloadUnits is only of use to systemd.
	reloadUnits   = regexp.MustCompile(`systemctl daemon-reload; `)
	systemctlCall = regexp.MustCompile(`systemctl (enable --now|disable --now|start|stop|restart|reload|status)((?: (?:` + unitNames + `)\b)+)`)
	journalCall   = regexp.MustCompile(`journalctl -u (` + unitNames + `)\b( -n \d+)?`)
)

// serviceCommands are what stands for the verbs of systemctl; %s is the name of the service.
var serviceCommands = map[Services]map[string]string{
	openRC: {
		"enable --now": "rc-update add %s; rc-service %s start", "disable --now": "rc-service %s stop; rc-update del %s",
		"start": "rc-service %s start", "stop": "rc-service %s stop", "restart": "rc-service %s restart",
		"reload": "rc-service %s reload", "status": "rc-service %s status",
	},
	runit: {
		"enable --now": "ln -s /etc/sv/%s /etc/service/", "disable --now": "sv down %s; rm /etc/service/%s",
		"start": "sv up %s", "stop": "sv down %s", "restart": "sv restart %s", "reload": "sv hup %s", "status": "sv status %s",
	},
	noneManages: {
		"enable --now": "start %s", "disable --now": "stop %s", "start": "start %s", "stop": "stop %s", "restart": "restart %s",
		"reload": "send SIGHUP to %s", "status": "check whether %s is running",
	},
}

// serviceLogs say how the end of a log is read.
var serviceLogs = map[Services]string{
	openRC: "tail -n 50 " + serviceLogFiles[openRC], runit: "tail -n 50 " + serviceLogFiles[runit],
	noneManages: "the standard error of %s",
}

// serviceLogFiles are where logs are, as docs/how-to/without-systemd.md sets it up; %s is the name of the service.
var serviceLogFiles = map[Services]string{openRC: "/var/log/%s.log", runit: "/var/log/%s/current"}

// Log says where the log of a service is: in the journal, or in a file. Neither: it is not known.
func (m Services) Log(unit string) (file string, journal bool) {
	return strings.ReplaceAll(serviceLogFiles[m], "%s", unit), m == systemd
}

// Adapt puts commands of what manages services here in the place of systemd's.
func (m Services) Adapt(text string) string {
	if m == systemd || !strings.Contains(text, "ctl ") {
		return text
	}
	text = reloadUnits.ReplaceAllString(text, "")
	text = systemctlCall.ReplaceAllStringFunc(text, func(call string) string {
		parts := systemctlCall.FindStringSubmatch(call)
		var commands []string
		for unit := range strings.FieldsSeq(parts[2]) {
			commands = append(commands, strings.ReplaceAll(serviceCommands[m][parts[1]], "%s", unit))
		}
		return strings.Join(commands, "; ")
	})
	return journalCall.ReplaceAllStringFunc(text, func(call string) string {
		return strings.ReplaceAll(serviceLogs[m], "%s", journalCall.FindStringSubmatch(call)[1])
	})
}

// spokenKeys are the names in JSON of what is said to operators. Other values are data, which may hold such a command.
var spokenKeys = map[string]bool{
	`"hint"`: true, `"next"`: true, `"what"`: true, `"why"`: true, `"message"`: true, `"reason"`: true, `"error"`: true,
	`"cause"`: true, `"look"`: true, `"then"`: true, `"notes"`: true, `"problems"`: true, `"effects"`: true, `"refused"`: true,
}

// AdaptJSON is Adapt for what is said in a text in JSON.
func (m Services) AdaptJSON(text []byte) []byte {
	if m == systemd || !bytes.Contains(text, []byte("ctl ")) {
		return text
	}
	out := make([]byte, 0, len(text))
	key, outer := "", []string{}
	for len(text) > 0 {
		n := 1
		switch text[0] {
		case '{':
			outer = append(outer, key)
		case '}':
			if last := len(outer) - 1; last >= 0 {
				key, outer = outer[last], outer[:last]
			}
		case '"':
			n = stringLength(text)
			if rest := bytes.TrimLeft(text[n:], " \n"); len(rest) > 0 && rest[0] == ':' {
				key = string(text[:n])
			} else if spokenKeys[key] {
				out = append(out, m.Adapt(string(text[:n]))...)
				text = text[n:]
				continue
			}
		}
		out, text = append(out, text[:n]...), text[n:]
	}
	return out
}

// stringLength is how long the string is that begins a text in JSON.
func stringLength(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}
