{%- set tplroot = tpldir.split('/')[0] %}
{%- from tplroot ~ '/map.jinja' import map, this, peers, paths, settled with context %}
include:
  - saltclusterd.service

# Done once: a member stays one, and who was removed comes back by hand only (saltclusterctl join PEER).
{%- if this.id == map.first %}
saltclusterd-member:
  cmd.run:
    - name: saltclusterctl bootstrap
    - unless: {{ settled }}
    - require:
      - saltclusterd-service
{%- else %}
saltclusterd-member:
  cmd.run:
    - name: |
        token=
        test ! -e {{ paths.token }} || token='--token-file {{ paths.token }}'
        for peer in {{ peers | join(' ') }}; do
          if saltclusterctl join "$peer" $token; then
            touch -c {{ paths.dropin }} # the salt-master is to be restarted: it has another key now
            exit 0
          fi
        done
        exit 1
    - unless: {{ settled }}
    - require:
      - saltclusterd-service

saltclusterd-member-token:
  file.absent: # used up
    - name: {{ paths.token }}
    - require:
      - saltclusterd-member
{%- endif %}
