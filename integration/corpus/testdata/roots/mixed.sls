include: [simple]

succeeds:
  test.succeed_with_changes: []

nothing:
  test.nop: []

fails:
  test.fail_without_changes: []

not run:
  test.nop:
    - require:
      - test: fails

on changes:
  test.show_notification:
    - text: grüße
    - onchanges:
      - test: succeeds

missing source:
  file.managed:
    - name: {{ grains["corpus_dir"] }}/none
    - source: salt://is/not/there

an event:
  event.send:
    - name: corpus/state
    - data: {from: a state}
