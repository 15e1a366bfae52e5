{%- set tplroot = tpldir.split('/')[0] %}
{%- from tplroot ~ '/map.jinja' import map with context %}
{%- set package = map.package %}
{%- set file = package.source.split('/') | last %}
{%- set remote = '://' in package.source and not package.source.startswith(('salt://', 'file://')) %}
{%- set kept = '/var/cache/saltclusterd/' ~ file if remote or file.endswith('.tar.gz') else package.source %}
{%- set lacking = opts.test and not salt['file.file_exists'](kept) and not kept.startswith('salt://') %}

{%- if kept != package.source %}
saltclusterd-install-file:
  file.managed:
    - name: {{ kept | yaml_encode }}
    - source: {{ package.source | yaml_encode }}
    {%- if package.source_hash %}
    - source_hash: {{ package.source_hash | yaml_encode }}
    {%- elif not remote %}
    - skip_verify: True
    {%- endif %}
    - mode: '0644'
    - makedirs: True
    - show_changes: False
    - require_in:
      - saltclusterd-install
{%- endif %}

saltclusterd-install:
{%- if lacking %}
  test.configurable_test_state: # what is not fetched yet cannot be looked at
    - name: install {{ file }}
    - changes: True
    - result: True
{%- elif file.endswith('.tar.gz') %}
  cmd.run:
    - name: |
        set -e
        umask 022
        tar --strip-components=1 --no-same-owner -C / $(test ! -e /etc/salt/saltclusterd || echo --exclude=*/etc/*) -xzf '{{ kept }}'
        systemd-sysusers saltclusterd.conf
        systemctl daemon-reload
    {%- set version = (file | regex_search('^saltclusterd-(.+)-linux-[^-]+\.tar\.gz$') or [''])[0] %}
    - unless: test "$(saltclusterd --version)" = 'saltclusterd {{ version }}'
{%- else %}
  pkg.installed:
    {%- if package.source %}
    - sources:
      - {{ package.name }}: {{ kept | yaml_encode }}
    - refresh: False
    {%- else %}
    - name: {{ package.name }}
    {%- if package.version %}
    - version: {{ package.version | yaml_encode }}
    {%- endif %}
    {%- endif %}
{%- endif %}
