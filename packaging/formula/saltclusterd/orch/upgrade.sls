# Another saltclusterd, or another configuration, on all members, one after the other. Nothing begins while the cluster has a
# problem, and what follows a host that is not well does not happen:
#   salt-run state.orchestrate saltclusterd.orch.upgrade
# Each member's minions go to the others meanwhile. The one that this runs on hands over in place: it has to bring the answers.
{%- from tpldir ~ '/map.jinja' import map, own, target, witness with context %}
{%- macro step(id, what, sls, after) %}
saltclusterd-upgrade-{{ id }}-{{ what }}:
  salt.state:
    {{- target(id) }}
    - sls: {{ sls }}
    {%- if after %}
    - require:
      - saltclusterd-upgrade-{{ after }}
    {%- endif %}
{% endmacro %}
{{- step(own, 'first', 'saltclusterd.ready', '') }}
{%- set before = namespace(step=own ~ '-first') %}
{%- for id in map.nodes %}
{%-   set steps = [('install', 'saltclusterd.service'), ('ready', 'saltclusterd.ready')] %}
{%-   if id != own and not witness(id) %}
{%-     set steps = [('drain', 'saltclusterd.drain'), steps[0], ('undrain', 'saltclusterd.undrain'), steps[1]] %}
{%-   endif %}
{%-   for what, sls in steps %}
{{- step(id, what, sls, before.step) }}
{%-     set before.step = id ~ '-' ~ what %}
{%-   endfor %}
{%- endfor %}
