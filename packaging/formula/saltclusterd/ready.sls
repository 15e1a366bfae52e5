# Waits until the cluster as this host sees it has no problem. For orchestrations: it is a change every time.
saltclusterd-ready:
  cmd.run:
    - name: saltclusterctl status --check --no-color
    - retry:
        attempts: 40
        interval: 3
        splay: 0
