"""
Salt's own wheel module ``minions``, with presence that is true behind
saltclusterd: what ``cluster.present`` says (see the runner ``manage`` beside
it). SaltGUI and the like ask it.

It takes the place of the stock module where its directory is in ``wheel_dirs``
of the master's configuration, and that of the runners in ``runner_dirs``.
"""

import salt.loader

__virtualname__ = "minions"


def __virtual__():
    return __virtualname__


def connected():
    """
    List all minions of the cluster that are alive
    """
    return salt.loader.runner(__opts__)["cluster.present"]()
