# Takes this host out of the cluster and gives its salt-master the ports back, with all keys and caches. Nothing is removed while
# the cluster cannot let it go. One host at a time: its minions need the others.
{%- set tplroot = tpldir.split('/')[0] %}
{%- from tplroot ~ '/map.jinja' import map, this, master, paths, witness with context %}
saltclusterd-clean-leave:
  cmd.run:
    - name: saltclusterctl {{ 'remove ' ~ this.id if witness else 'leave --restore-master --yes' }} --timeout 10m
    - onlyif: test -e {{ paths.state }}/membership.json && systemctl --quiet is-active saltclusterd

saltclusterd-clean-service:
  service.dead:
    - name: saltclusterd
    - enable: False
    - require:
      - saltclusterd-clean-leave

{%- if not witness %}

saltclusterd-clean-dropin:
  file.absent:
    - name: {{ paths.dropin }}
    - require:
      - saltclusterd-clean-service

saltclusterd-clean-master:
  cmd.run:
    - name: systemctl restart {{ master.service }}
    - onchanges:
      - saltclusterd-clean-leave
      - saltclusterd-clean-dropin
{%- endif %}

{%- if map.package.source.endswith('.tar.gz') %}
{%- set kept = '/var/cache/saltclusterd/' ~ map.package.source.split('/') | last %}
saltclusterd-clean-package:
  cmd.run:
    - name: |
        tar -tzf {{ kept }} | cut -d/ -f2- | grep -v '/$' | (cd /; xargs -d '\n' rm -f)
        systemctl daemon-reload
    - onlyif: test -e {{ kept }}
    - require:
      - saltclusterd-clean-service
{%- else %}
saltclusterd-clean-package:
  pkg.removed:
    - name: {{ map.package.name }}
    - require:
      - saltclusterd-clean-service
{%- endif %}

saltclusterd-clean-files:
  file.absent:
    - names:
      - {{ paths.config }}
      - {{ paths.secret }}
      - {{ paths.token }}
      - {{ paths.state }} # what the node remembers of the cluster
      - /var/cache/saltclusterd
    - require:
      - saltclusterd-clean-package
