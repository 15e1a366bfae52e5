"""Prints a Salt's master defaults as the JSON that is kept here: <venv>/bin/python dump.py > <major>.json

Run it as root on a machine without a Salt of its own. What depends on the machine is made neutral.
"""

import json
from collections.abc import Mapping

import salt.config


def plain(value):
    """Salt's immutable containers as ordinary ones."""
    return dict(value) if isinstance(value, Mapping) else list(value)


defaults = dict(salt.config.DEFAULT_MASTER_OPTS)
defaults["ipc_write_buffer"] = 0  # from the machine's memory, and always replaced in apply_master_config
defaults["user"] = "root"  # the user that starts the master
print(json.dumps(defaults, indent=1, sort_keys=True, default=plain))
