include:
  - saltclusterd.install
  - saltclusterd.config

# Beside a salt-master that has not moved yet it waits. A reload is a hand-over in place: minions notice nothing.
saltclusterd-service:
  service.running:
    - name: saltclusterd
    - enable: True
    - reload: True
    - require:
      - saltclusterd-config-check
    - watch:
      - file: saltclusterd-config
{%- from tpldir.split('/')[0] ~ '/map.jinja' import map with context %}
{%- if map.package.source.endswith('.tar.gz') %}
      - saltclusterd-install
{%- endif %}
