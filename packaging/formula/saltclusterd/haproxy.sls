# A load balancer in front of all members of the pillar, as saltclusterctl haproxy prints it.
{%- set tplroot = tpldir.split('/')[0] %}
{%- from tplroot ~ '/map.jinja' import map with context %}
{%- set servers = [] %}
{%- for id, entry in map.nodes.items() if (entry or {}).get('address') and not entry.get('config', {}).get('cluster_witness') %}
{%-   do servers.append([id, entry.address]) %}
{%- endfor %}
saltclusterd-haproxy-package:
  pkg.installed:
    - name: haproxy

saltclusterd-haproxy-config:
  file.managed:
    - name: {{ map.haproxy.config }}
    - source: salt://{{ tplroot }}/files/haproxy.cfg.jinja
    - template: jinja
    - context:
        cluster: {{ map.config.cluster_id | json }}
        publish_port: {{ map.config.get('publish_port', 4505) }}
        ret_port: {{ map.config.get('ret_port', 4506) }}
        heartbeat: {{ map.config.get('heartbeat_interval', '10s') | json }}
        health_port: {{ map.haproxy.health_port }}
        agent_port: {{ map.haproxy.agent_port }}
        send_proxy: {{ map.haproxy.send_proxy | json }}
        minions: {{ map.haproxy.minions }}
        bind: {{ map.haproxy.bind | json }}
        servers: {{ servers | json }}
    - mode: '0644'
    - check_cmd: haproxy -c -f
    - require:
      - saltclusterd-haproxy-package

saltclusterd-haproxy-service:
  service.running:
    - name: haproxy
    - enable: True
    - reload: True
    - watch:
      - file: saltclusterd-haproxy-config
