"""
Salt's own runner ``manage``, with presence that is true behind saltclusterd.

Stock ``manage.present`` and its kind ask this host's kernel which addresses are
connected to the publish port: behind a load balancer these are not the minions',
and minions on other nodes are never among them. Here they are what
``cluster.present`` says. Everything else is the installed Salt's own.

It takes the place of the stock runner where its directory is in ``runner_dirs``
of the master's configuration.
"""

import types

import salt.runners.manage as _stock
from salt.utils.functools import namespaced_function as _namespaced

__virtualname__ = "manage"


def __virtual__():
    return __virtualname__


# The loader gives __opts__ and __salt__ to this module only: the functions have to look for them here.
for _name, _function in list(vars(_stock).items()):
    if isinstance(_function, types.FunctionType) and _function.__module__ == _stock.__name__:
        globals()[_name] = _namespaced(_function, globals())


def list_state(subset=None, show_ip=False):
    """
    Print a list of all minions of the cluster that are alive (no commands will
    be sent to minions). See ``cluster.present``.

    subset : None
        Pass in a list of minion ids.

    show_ip : False
        Also show the IP address each minion is connecting from.

    CLI Example:

    .. code-block:: bash

        salt-run manage.list_state
    """
    return __salt__["cluster.present"](subset=subset, show_ip=show_ip)
