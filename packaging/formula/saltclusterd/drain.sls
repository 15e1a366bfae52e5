# Lets the minions of this host's member go to the others. For orchestrations.
saltclusterd-drain:
  cmd.run:
    - name: saltclusterctl drain --self --timeout 10m
