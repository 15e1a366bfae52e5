# Makes one host a member, or brings one up to date that is; its salt-master is restarted when that is due:
#   salt-run state.orchestrate saltclusterd.orch.join pillar='{saltclusterd_node: m2}'
# Without a secret in the pillar it proves its right with a token that is made here, for that node, once, for ten minutes.
{%- from tpldir ~ '/map.jinja' import map, own, target with context %}
{%- set id = pillar.saltclusterd_node %}
{%- set members = (salt['cmd.run_stdout']('saltclusterctl members --out json', python_shell=False) | load_json).members %}
{%- set token = '' %}
{%- if not opts.test and not map.secret and id not in members | map(attribute='id') | list %}
{%-   set made = salt['cmd.run_stdout']('saltclusterctl token create --out json --for 10m --note formula --node ' ~ id,
        python_shell=False, output_loglevel='quiet') | load_json %}
{%-   set token = made.text %}
{%- endif %}
saltclusterd-join-{{ id }}:
  salt.state:
    {{- target(id) }}
    - sls: saltclusterd
    - pillar:
        saltclusterd:
          join_token: {{ token | json }}
          master:
            restart: {{ id != own }} # this orchestration would not survive the restart of its own salt-master

saltclusterd-join-{{ id }}-ready:
  salt.state:
    {{- target(id) }}
    - sls: saltclusterd.ready
    - require:
      - saltclusterd-join-{{ id }}
