"""
The cluster of saltclusterd, as Salt's own runner of this name shows a cluster.

For masters of 3006 and 3007, which have no such runner, and for 3008, whose own
one reads the state of Salt's native cluster, which is not there. It asks the
saltclusterd of this host over its admin socket.

To install it, put the directory of this file into ``runner_dirs`` of the
master's configuration, or the file into ``extension_modules``/runners.

.. code-block:: bash

    salt-run cluster.members
    salt-run cluster.ring_info
    salt-run cluster.sync_roots
    salt-run cluster.present
    salt-run cluster.not_present

The socket is the option ``saltclusterd_socket`` of the master's configuration,
else what /etc/salt/saltclusterd says, else /run/saltclusterd/admin.sock.
"""

import glob
import http.client
import json
import os
import socket

import salt.client
import salt.utils.files
import salt.utils.yaml
from salt.exceptions import CommandExecutionError

__virtualname__ = "cluster"

DEFAULT_SOCKET = "/run/saltclusterd/admin.sock"
# Bytes of an answer that are read.
MAX_ANSWER = 16 << 20


def __virtual__():
    return __virtualname__


def members():
    """
    Return this master's view of the members of the cluster.

    .. code-block:: python

        {
            "node_id":            str,
            "voters":             [str, ...],  # sorted
            "learners":           [str, ...],  # sorted; members in reserve are among them
            "membership_version": int,         # grows with every decision of the cluster; -1 without one
            "voter_count":        int,
            "learner_count":      int,
            "leader_id":          str | None,
            "term":               int,
            "unhealthy_voters":   [str, ...],  # that do not answer
            "recently_demoted":   [str, ...],  # always empty: votes are only taken with a replacement
        }

    CLI Example:

    .. code-block:: bash

        salt-run cluster.members
    """
    status = _ask("GET", "/v1/status", timeout=15)
    cluster = status.get("cluster") or {}
    listed = status.get("members") or []
    voting = set(cluster.get("voter_ids") or [])
    voters = sorted(m["id"] for m in listed if m["id"] in voting)
    learners = sorted(m["id"] for m in listed if m["id"] not in voting)
    return {
        "node_id": status["node"]["id"],
        "voters": voters,
        "learners": learners,
        "membership_version": cluster.get("rev", -1),
        "voter_count": len(voters),
        "learner_count": len(learners),
        "leader_id": cluster.get("leader") or None,
        "term": cluster.get("term", 0),
        "unhealthy_voters": sorted(
            m["id"] for m in listed if m["id"] in voting and m["state"] != "alive"
        ),
        "recently_demoted": [],
    }


def ring_info():
    """
    Return the nodes that share the work, as this master sees them.

    .. code-block:: python

        {
            "is_clustered": bool,
            "node_count":   int,
            "nodes":        [str, ...],  # sorted; those that can take work now
            "vnodes":       int,         # always 0: the hash needs none
        }

    CLI Example:

    .. code-block:: bash

        salt-run cluster.ring_info
    """
    ring = _ask("GET", "/v1/ring", timeout=15)
    nodes = sorted(n["id"] for n in ring.get("nodes") or [] if n.get("share"))
    return {
        "is_clustered": bool(ring.get("nodes")),
        "node_count": len(nodes),
        "nodes": nodes,
        "vnodes": 0,
    }


def sync_roots(roots="both", timeout=600):
    """
    Give this master's ``file_roots`` and ``pillar_roots`` to all other masters,
    now. saltclusterd does that by itself unless it is told not to
    (``cluster_roots_sync``). It waits until every node has them.

    :param roots: ``"file"``, ``"pillar"`` or ``"both"``, as Salt's own runner
                  takes it. File and pillar roots are one revision here, so both
                  are sent whatever it says.
    :param timeout: seconds to wait for the other nodes

    CLI Example:

    .. code-block:: bash

        salt-run cluster.sync_roots
    """
    if roots not in ("file", "pillar", "both"):
        raise ValueError(f"roots must be 'file', 'pillar', or 'both', got {roots!r}")
    cluster = _ask("GET", "/v1/status", timeout=15).get("cluster")
    if not cluster:
        return {
            "status": "skipped",
            "reason": "this master is not a cluster member",
        }
    timeout = int(timeout)
    request = {"wait": True, "timeout": timeout * 1000000000}
    outcome = _ask("POST", "/v1/roots/sync", request, timeout=timeout + 30)
    done = outcome.get("roots") or {}
    nodes = {}
    for node in done.get("nodes") or []:
        nodes[node["node"]] = {
            "applied": node["applied"],
            "installed": node["installed"],
            "removed": node["removed"],
        }
        for key in ("error", "skipped"):
            if node.get(key):
                nodes[node["node"]][key] = node[key]
    if done.get("held") or done.get("failed"):
        raise CommandExecutionError(outcome["message"])
    return {
        "status": "fan-out initiated",
        "channels": ["file_roots", "pillar_roots"],
        "cluster_id": cluster["id"],
        "note": outcome["message"],
        "nodes": nodes,
    }


def present(subset=None, show_ip=False, ping=False):
    """
    Return the minions that are alive, on whichever node of the cluster they
    hang, in the shape of ``manage.present``. No commands are sent to minions.

    A minion is alive while its connection is. Connections do not say whose they
    are, their addresses do; behind one address (NAT, a load balancer that does
    not say for whom it connects) a minion that has ended counts as alive until
    all others there were heard of, an hour at most.

    :param subset: a list of minion ids
    :param show_ip: return addresses by minion id
    :param ping: ask those in doubt with ``test.ping``, and count who answers

    CLI Example:

    .. code-block:: bash

        salt-run cluster.present
        salt-run cluster.present show_ip=True
        salt-run cluster.present ping=True
    """
    found = [m for m in _presence()["present"] if subset is None or m["id"] in subset]
    doubtful = [m["id"] for m in found if m.get("doubt")]
    if ping and doubtful:
        with salt.client.get_local_client(__opts__["conf_file"]) as client:
            answers = client.cmd(doubtful, "test.ping", tgt_type="list")
        found = [m for m in found if not m.get("doubt") or answers.get(m["id"]) is True]
    if show_ip:
        return {m["id"]: m.get("address", "") for m in found}
    return sorted(m["id"] for m in found)


def not_present(subset=None, show_ip=False, ping=False):
    """
    Return the accepted minions that are not alive, as ``manage.not_present``.

    CLI Example:

    .. code-block:: bash

        salt-run cluster.not_present
    """
    there = set(present(ping=ping))
    answer = _presence()
    ids = sorted(m["id"] for m in answer["present"] + answer["absent"])
    return [i for i in ids if i not in there and (subset is None or i in subset)]


def alived(subset=None, show_ip=False, ping=False):
    """
    The same as ``present``, under the name that ``manage`` has for it, too.

    CLI Example:

    .. code-block:: bash

        salt-run cluster.alived
    """
    return present(subset=subset, show_ip=show_ip, ping=ping)


def not_alived(subset=None, show_ip=False, ping=False):
    """
    The same as ``not_present``.

    CLI Example:

    .. code-block:: bash

        salt-run cluster.not_alived
    """
    return not_present(subset=subset, show_ip=show_ip, ping=ping)


def _presence():
    return _ask("GET", "/v1/presence", timeout=15)


class _Connection(http.client.HTTPConnection):
    """
    HTTP over a unix socket.
    """

    def __init__(self, path, timeout):
        super().__init__("saltclusterd", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def _ask(method, path, request=None, timeout=15):
    """
    Ask saltclusterd. The answer is a value, or for long operations a line for
    each step, of which the last one counts.
    """
    place = _socket()
    connection = _Connection(place, timeout)
    try:
        body = None if request is None else json.dumps(request)
        connection.request(method, path, body=body)
        response = connection.getresponse()
        raw = response.read(MAX_ANSWER)
    except PermissionError as exc:
        raise CommandExecutionError(
            f"connect to saltclusterd on {place}: {exc}. Run it as root, or as a member of the group in its option admin_group"
        )
    except OSError as exc:
        raise CommandExecutionError(
            f"saltclusterd is not reachable on {place}: {exc}. Is it running? systemctl status saltclusterd"
        )
    finally:
        connection.close()
    try:
        if response.getheader("Content-Type", "").startswith("application/x-ndjson"):
            event = json.loads(raw.splitlines()[-1])
            error, answer = event.get("error"), event.get("outcome")
        else:
            answer = json.loads(raw)
            error = answer if response.status != 200 else None
    except (ValueError, IndexError) as exc:
        raise CommandExecutionError(f"saltclusterd's answer cannot be read: {exc}")
    if error:
        hint = f" ({error['hint']})" if error.get("hint") else ""
        raise CommandExecutionError(error.get("message", "saltclusterd says no") + hint)
    return answer


def _socket():
    """
    Find the admin socket.
    """
    given = __opts__.get("saltclusterd_socket")
    if given:
        return given
    main = os.path.join(os.path.dirname(__opts__.get("conf_file") or "/etc/salt/master"), "saltclusterd")
    options = {}
    for path in [main] + sorted(glob.glob(main + ".d/*.conf")):
        try:
            with salt.utils.files.fopen(path) as handle:
                options.update(salt.utils.yaml.safe_load(handle) or {})
        except (OSError, ValueError, TypeError, salt.utils.yaml.YAMLError):
            continue  # saltclusterd itself says what is wrong with it
    if options.get("admin_socket"):
        return options["admin_socket"]
    if options.get("run_dir"):
        return os.path.join(options["run_dir"], "admin.sock")
    return DEFAULT_SOCKET
