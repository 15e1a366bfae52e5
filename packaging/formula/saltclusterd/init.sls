# One member: the package, its configuration, the daemon, its place in the cluster. The salt-master is restarted only where
# master:restart says so, so that this can be applied to all hosts at once.
include:
  - saltclusterd.install
  - saltclusterd.config
  - saltclusterd.service
  - saltclusterd.member
  - saltclusterd.master
