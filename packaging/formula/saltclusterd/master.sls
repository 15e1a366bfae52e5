{%- set tplroot = tpldir.split('/')[0] %}
{%- from tplroot ~ '/map.jinja' import master, paths, witness with context %}
{#- It was started before its drop-in was written, or holds the key that it had before it joined. #}
{%- set due %}
since=$(systemctl show --property=ExecMainStartTimestamp --value {{ master.service }})
test "$(stat -c %Y {{ paths.dropin }})" -ge "$(date -d "$since" +%s)" ||
  saltclusterctl status --out json | grep -q 'restart the salt-master'
{%- endset %}
include:
  - saltclusterd.member
{%- if not witness %}

saltclusterd-master:
{%- if master.restart %}
  cmd.run:
    - name: systemctl restart {{ master.service }}
{%- else %}
  test.show_notification:
    - text: 'The salt-master is to be restarted, one host after the other: salt-run state.orchestrate saltclusterd.orch.restart'
{%- endif %}
    - onlyif: {{ due | json }}
    - require:
      - saltclusterd-member
      - saltclusterd-config-dropin
{%- endif %}
