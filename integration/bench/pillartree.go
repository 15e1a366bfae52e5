package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The tree of pillars is as one of a site that has grown: roles by name and by grains, beside what all minions get.
const (
	pillarRoles  = 20 // of which a minion has one
	pillarCommon = 6  // files for all
	pillarOSes   = 4  // of which a minion has one
	pillarsEach  = pillarCommon + 2
)

// pillarFiles are the tree's files by name.
func pillarFiles() map[string]string {
	files := map[string]string{"site/map.jinja": pillarMap, "top.sls": pillarTop()}
	for i := range pillarCommon {
		files[fmt.Sprintf("common/part%d.sls", i)] = pillarPart(fmt.Sprint("common", i), 20)
	}
	for i := range pillarRoles {
		files[fmt.Sprintf("role/role%d.sls", i)] = pillarPart(fmt.Sprint("role", i), 40)
	}
	for i := range pillarOSes {
		files[fmt.Sprintf("os/os%d.sls", i)] = pillarPart(fmt.Sprint("os", i), 20)
	}
	return files
}

// pillarTop names what each minion gets.
func pillarTop() string {
	var s strings.Builder
	s.WriteString("base:\n  '*':\n")
	for i := range pillarCommon {
		fmt.Fprintf(&s, "    - common.part%d\n", i)
	}
	for i := range pillarRoles { // bench<n> has the role n modulo pillarRoles
		fmt.Fprintf(&s, "  'G@bench_role:role%d and bench*':\n    - match: compound\n    - role.role%d\n", i, i)
	}
	for i := range pillarOSes {
		fmt.Fprintf(&s, "  'bench_os:os%d':\n    - match: grain\n    - os.os%d\n", i, i)
	}
	return s.String()
}

// pillarMap is imported by every file.
const pillarMap = `{% set site = salt['grains.filter_by']({
  'Debian': {'conf': '/etc/default', 'group': 'adm', 'ports': [80, 443, 8080]},
  'RedHat': {'conf': '/etc/sysconfig', 'group': 'wheel', 'ports': [80, 443]},
}, default='Debian') %}
`

// pillarPart is a file with so many entries.
func pillarPart(name string, entries int) string {
	return fmt.Sprintf(`{%% from 'site/map.jinja' import site with context %%}
%[1]s:
  owner: {{ grains['id'] }}
  group: {{ site.group }}
  ports: {{ site.ports | json }}
  accounts:
{%% for n in range(%[2]d) %%}
    user{{ n }}:
      uid: {{ 2000 + n }}
      home: /home/user{{ n }}
      shell: {{ grains.get('shell', '/bin/sh') }}
      groups: [users, {{ site.group }}]
      {%% if n %% 5 == 0 %%}
      sudo: True
      {%% endif %%}
{%% endfor %%}
  settings:
    conf: {{ site.conf }}/%[1]s
    listen: {{ grains['ipv4'] | first }}
    text: |
      This is what %[1]s of {{ grains['fqdn'] }} reads when it starts.
      It has {{ grains['num_cpus'] }} processors.
`, name, entries)
}

// writePillars puts the tree in the place of another.
func writePillars(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("write pillars: %w", err)
	}
	for name, text := range pillarFiles() {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("write pillars: %w", err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return fmt.Errorf("write pillars: %w", err)
		}
	}
	return nil
}

// pillarGrains are those of the minion bench<n>: as many and as large as a Debian's.
func pillarGrains(n int) map[string]any {
	g := map[string]any{
		"id": fmt.Sprint("bench", n), "bench_role": fmt.Sprint("role", n%pillarRoles), "bench_os": fmt.Sprint("os", n%pillarOSes),
		"os": "Debian", "os_family": "Debian", "osrelease": "12", "oscodename": "bookworm", "kernel": "Linux", "kernelrelease": "6.1.0-18-amd64",
		"fqdn": fmt.Sprintf("bench%d.site.example", n), "domain": "site.example", "host": fmt.Sprint("bench", n), "shell": "/bin/bash",
		"ipv4": []any{fmt.Sprintf("10.1.%d.%d", n/250, n%250+1), "127.0.0.1"}, "num_cpus": 8, "mem_total": 15989, "osarch": "amd64",
		"path": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "pythonversion": []any{3, 10, 13, "final", 0},
	}
	for i := range 16 {
		g[fmt.Sprint("disk", i)] = map[string]any{"size": 1 << 40, "model": "a disk of some kind", "serial": fmt.Sprintf("S%012d", n*100+i)}
		g[fmt.Sprint("ip_interface", i)] = []any{fmt.Sprintf("10.2.%d.%d", i, n%250+1), fmt.Sprintf("fe80::%x:%x", i, n)}
		g[fmt.Sprint("cpu_flags", i)] = []any{"fpu", "vme", "de", "pse", "tsc", "msr", "pae", "mce", "cx8", "apic"}
	}
	return g
}
