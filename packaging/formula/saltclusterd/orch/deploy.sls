# Makes all hosts of the pillar members, one after the other: a host joins, its salt-master is restarted, the cluster is well, then
# the next. On the first member, where salt-call state.apply saltclusterd has made the cluster:
#   salt-run state.orchestrate saltclusterd.orch.deploy
{%- from tpldir ~ '/map.jinja' import map, own with context %}
{%- set before = namespace(id='') %}
{%- for id in map.nodes if id != own %}
saltclusterd-deploy-{{ id }}:
  salt.runner:
    - name: state.orchestrate
    - mods: saltclusterd.orch.join
    - pillar:
        saltclusterd_node: {{ id }}
    - failhard: True
{%- if before.id %}
    - require:
      - saltclusterd-deploy-{{ before.id }}
{%- endif %}
{%- set before.id = id %}
{% endfor %}
