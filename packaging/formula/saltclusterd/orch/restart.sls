# Restarts the salt-masters where that is due, one after the other, but for the one that this runs on:
#   salt-run state.orchestrate saltclusterd.orch.restart
{%- from tpldir ~ '/map.jinja' import map, own, target, witness with context %}
{%- set before = namespace(id='') %}
{%- for id in map.nodes if id != own and not witness(id) %}
saltclusterd-restart-{{ id }}:
  salt.state:
    {{- target(id) }}
    - sls: saltclusterd.master
    - pillar:
        saltclusterd: {master: {restart: True}}
{%- if before.id %}
    - require:
      - saltclusterd-restart-{{ before.id }}-ready
{%- endif %}

saltclusterd-restart-{{ id }}-ready:
  salt.state:
    {{- target(id) }}
    - sls: saltclusterd.ready
    - require:
      - saltclusterd-restart-{{ id }}
{%- set before.id = id %}
{% endfor %}
