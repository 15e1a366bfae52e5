a file:
  file.managed:
    - name: {{ grains["corpus_dir"] }}/hello.txt
    - source: salt://hello.txt

a template:
  file.managed:
    - name: {{ grains["corpus_dir"] }}/greeting.txt
    - source: salt://greeting.jinja
    - template: jinja

a tree:
  file.recurse:
    - name: {{ grains["corpus_dir"] }}/sub
    - source: salt://sub

a command:
  cmd.run:
    - name: echo done
    - require:
      - file: a file
