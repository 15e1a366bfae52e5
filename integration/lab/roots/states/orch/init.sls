ping them:
  salt.function:
    - name: test.ping
    - tgt: '*'

apply demo:
  salt.state:
    - tgt: '*'
    - sls: demo
    - require:
      - salt: ping them
