{%- set tplroot = tpldir.split('/')[0] %}
{%- from tplroot ~ '/map.jinja' import map, this, config, master, paths, settled, witness with context %}
{%- if not this.id %}
saltclusterd-config-node:
  test.fail_without_changes:
    - name: no member of the pillar saltclusterd:nodes has the minion {{ grains['id'] }}
    - failhard: True
{%- else %}
{%- set user = 'saltclusterd' if witness else master.user or (salt['file.get_user'](master.pki_dir) if salt['file.directory_exists'](master.pki_dir) else 'root') %}
{%- set said = master.version %}
{%- if not said and not witness and salt['cmd.which'](master.command.split()[0]) %}
{%-   set said = salt['cmd.run_stdout'](master.command ~ ' --version', python_shell=False, ignore_retcode=True) %}
{%- endif %}
{%- set major = (said | string | regex_search('(30\d\d)') or [grains['saltversioninfo'][0]])[0] | int %}

{#- A secret that was put among the options goes to its file, too. #}
{%- set options = {'id': this.id} %}
{%- do options.update(config) %}
{%- set secret = 'saltclusterd:secret' if map.secret else 'saltclusterd:config:cluster_secret' if options.pop('cluster_secret', '') else '' %}
{%- if secret %}
{%-   do options.update({'cluster_secret_file': paths.secret}) %}
{%- elif 'cluster_secret_file' not in options %}
{%-   do options.update({'cluster_join_token_file': paths.token}) %}
{%- endif %}
{%- if master.config != '/etc/salt/master' %}
{%-   do options.update({'salt_config': master.config}) %}
{%- endif %}
{%- if master.command != 'salt-master' %}
{%-   do options.update({'salt_master_command': master.command}) %}
{%- endif %}

include:
  - saltclusterd.install

{%- if secret %}
saltclusterd-config-secret:
  file.managed:
    - name: {{ paths.secret }}
    - contents_pillar: {{ secret }}
    - user: {{ user }}
    - mode: '0600'
    - show_changes: False
    - require:
      - saltclusterd-install
    - require_in:
      - saltclusterd-config
{%- endif %}

{%- if map.join_token %}
saltclusterd-config-token:
  file.managed:
    - name: {{ paths.token }}
    - contents_pillar: saltclusterd:join_token
    - user: {{ user }}
    - mode: '0600'
    - show_changes: False
    - unless: {{ settled }}
    - require:
      - saltclusterd-install
    - require_in:
      - saltclusterd-config
{%- endif %}

saltclusterd-config:
  file.managed:
    - name: {{ paths.config }}
    - source: salt://{{ tplroot }}/files/formula.conf.jinja
    - template: jinja
    - context:
        config: {{ options | json }}
    - user: root
    - mode: '0644'
    - makedirs: True
    - require:
      - saltclusterd-install

# What is wrong is said here, with file and line, and the salt-master left alone.
saltclusterd-config-check:
  cmd.run:
    - name: saltclusterctl config check
    - unless: saltclusterctl config check
    - require:
      - saltclusterd-config

{%- if not witness %}
saltclusterd-config-dropin:
  file.managed:
    - name: {{ paths.dropin }}
    - source: salt://{{ tplroot }}/files/zz-saltclusterd.conf.jinja
    - template: jinja
    - context:
        interface: {{ master.interface | json }}
        master_id: {{ this.id | json }}
        major: {{ major }}
        key_driver: {{ master.keys_cache_driver | json }}
        runner_dirs: {{ (master.runner_dirs + ['/usr/share/saltclusterd/runners']) | unique | json }}
        wheel_dirs: {{ (master.wheel_dirs + ['/usr/share/saltclusterd/wheel']) | unique | json }}
    - user: root
    - mode: '0644'
    - makedirs: True
    - require:
      - saltclusterd-config-check
{%- endif %}
{%- endif %}
