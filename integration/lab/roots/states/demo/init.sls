# Every kind of request a state run makes: plain and templated files, whole directories, modules, requisites.
{% set root = grains['lab_dir'] %}

{{ root }}/plain.txt:
  file.managed:
    - source: salt://demo/files/plain.txt
    - makedirs: True
    - mode: '0644'

{{ root }}/motd:
  file.managed:
    - source: salt://demo/files/motd.jinja
    - template: jinja
    - makedirs: True

{{ root }}/tree:
  file.recurse:
    - source: salt://demo/files/tree
    - makedirs: True

{{ root }}/big.bin:
  file.managed:
    - source: salt://demo/files/big.bin
    - makedirs: True
    - require:
      - file: {{ root }}/plain.txt

say hello:
  cmd.run:
    - name: echo hello from {{ grains['id'] }}
    - require:
      - file: {{ root }}/motd
