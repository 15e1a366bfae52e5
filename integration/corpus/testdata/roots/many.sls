{% set dir = grains["corpus_dir"] ~ "/many" %}
include: [sub.more]

directory:
  file.directory: [name: {{ dir }}, mode: '0750', makedirs: True]

contents:
  file.managed:
    - name: {{ dir }}/contents
    - contents: [one, grüße]
    - mode: '0600'
    - fire_event: True

from pillar:
  file.managed: [name: {{ dir }}/pillar, contents_pillar: 'corpus:text']

first that is there:
  file.managed:
    - name: {{ dir }}/first
    - source: [salt://is/not/there, salt://hello.txt]

of another environment:
  file.managed: [name: {{ dir }}/dev, source: 'salt://dev.txt?saltenv=dev']

large:
  file.managed: [name: {{ dir }}/large, source: salt://large.txt]

tree:
  file.recurse:
    - name: {{ dir }}/tree
    - source: salt://sub
    - include_empty: True
    - exclude_pat: two*
    - clean: True
    - fire_event: corpus/tree

links:
  file.symlink:
    - names: [{{ dir }}/link, {{ dir }}/other]
    - target: {{ dir }}/contents

lines:
  file.append: [name: {{ dir }}/contents, text: more]

replaced:
  file.replace: [name: {{ dir }}/contents, pattern: one, repl: two]

block:
  file.blockreplace: [name: {{ dir }}/contents, append_if_not_found: True, content: within]

serialized:
  file.serialize: [name: {{ dir }}/data, dataset: {a: [1, 2]}, formatter: json]

gone:
  file.absent: [name: {{ dir }}/other]

exists:
  file.exists: [name: {{ dir }}/nothing]

script:
  cmd.script: [name: script.sh, source: salt://script.sh, args: grüße]

waits:
  cmd.wait:
    - name: echo changed
    - watch: [file: contents]

unless:
  cmd.run: [name: echo never, unless: 'true']

together:
  cmd.run: [name: echo parallel, parallel: True]

again:
  test.fail_without_changes:
    - retry: {attempts: 2, interval: 1}

before:
  test.succeed_with_changes:
    - prereq: [file: serialized]
    - listen_in: [test: last]

last:
  test.configurable_test_state: [changes: Random, result: True, comment: last, order: last]

a grain:
  grains.present: [name: 'corpus_set:deep', value: [1, 2], force: True]

a module:
  module.run:
    - test.echo: [text: grüße]

a job:
  schedule.present: [name: of a state, function: test.ping, seconds: 3600]

a beacon:
  beacon.present: [name: corpusbeacon, save: False, interval: 60]

of our own:
  corpusstate.changed: []

broken one:
  corpusstate.broken: []

environment:
  environ.setenv: [name: CORPUS, value: '1']
