"""pytest plugin: puts saltclusterd before every stock salt-master that Salt's test suite starts.

A master moves to a loopback address of its own, by the drop-in that `saltclusterctl setup` writes, and saltclusterd takes
the address and the ports that the test gave to the master. Minions, proxies and syndics of the test connect to saltclusterd
(or to HAProxy before three nodes); salt, salt-run, salt-key and salt-cp read the master's configuration with its drop-in.

FRONT_NODES says how many nodes a cluster has: 0 leaves the masters alone, so that a bare session differs in nothing else.
"""

import contextlib
import fnmatch
import functools
import os

import pytest
import pytest_timeout
from cluster import Cluster, note

NODES = int(os.environ["FRONT_NODES"])
TEST_SECONDS = 90  # Salt's own bound of a test that has none
FIXTURE_SECONDS = 210  # what a test has beyond its bound, which in Salt's suite does not include its fixtures
CLUSTERS = {}  # by the master's configuration file


def is_fronted(factory):
    """Whether saltclusterd supports this master: ZeroMQ on an IPv4 loopback address, outside of Salt's own cluster."""
    config = factory.config
    return (
        config.get("transport", "zeromq") == "zeromq"
        and not config.get("cluster_id")
        and config.get("interface", "").startswith("127.")
    )


def patch_factories():
    """Every master that the suite makes gets a cluster, which starts and stops with it."""
    from saltfactories.manager import FactoriesManager

    original = FactoriesManager.salt_master_daemon

    @functools.wraps(original)
    def salt_master_daemon(self, *args, **kwargs):
        factory = original(self, *args, **kwargs)
        if not is_fronted(factory):
            note(f"left alone: {factory.id}")
            return factory
        cluster = Cluster(factory, len(CLUSTERS) + 1, NODES)
        CLUSTERS[factory.config["conf_file"]] = cluster
        factory.before_start(cluster.start)
        factory.after_terminate(cluster.stop)
        # The check that saltclusterd serves comes before those of ports and events, which expect it.
        factory.start_check(cluster.check)
        callbacks = factory._start_checks_callbacks
        callbacks.insert(0, callbacks.pop())
        return factory

    FactoriesManager.salt_master_daemon = salt_master_daemon


def patch_stopped():
    """A test that stops a master for a while stops the node with it, and the other nodes live on."""
    from pytestshellutils.shell import Daemon

    original = Daemon.stopped

    @contextlib.contextmanager
    def stopped(self, *args, **kwargs):
        cluster = CLUSTERS.get(getattr(self, "config", {}).get("conf_file"))
        if cluster is None:
            with original(self, *args, **kwargs) as me:
                yield me
            return
        cluster.paused = True
        with original(self, *args, **kwargs) as me:
            cluster.paused = False
            yield me

    Daemon.stopped = stopped


def patch_client():
    """Clients within the test process get the factory's options, which lack the drop-in: their master is where it moved."""
    import salt.client

    original = salt.client.LocalClient.__init__

    @functools.wraps(original)
    def init(self, *args, **kwargs):
        original(self, *args, **kwargs)
        cluster = CLUSTERS.get(self.opts.get("conf_file"))
        if cluster is not None and self.opts.get("interface") == cluster.address:
            self.opts = dict(self.opts, interface=cluster.nodes[0].inner)

    salt.client.LocalClient.__init__ = init


def patch_listener():
    """The suite accepts keys when it hears salt/auth of a master, which fires where the sign-in was: that may be any node."""
    from saltfactories.plugins.event_listener import EventListener

    original = EventListener._process_event_payload

    @functools.wraps(original)
    def process(self, decoded):
        if fnmatch.fnmatch(decoded["tag"], "cluster/event/*/salt/auth"):  # cluster_event_mirror
            decoded = dict(decoded, tag="salt/auth")
        original(self, decoded)

    EventListener._process_event_payload = process


def pytest_configure(config):
    if NODES > 0:
        patch_listener()
        patch_factories()
        patch_stopped()
        patch_client()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Bounds each test together with its fixtures, so that a daemon that does not start does not end the session."""
    for item in items:
        marker = item.get_closest_marker("timeout")
        seconds = marker.args[0] if marker is not None and marker.args else TEST_SECONDS
        bound = pytest.mark.timeout(seconds + FIXTURE_SECONDS, method="signal", func_only=False)
        item.add_marker(bound, append=False)  # pytest-timeout takes the first one


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    rebound(item)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item):
    rebound(item)


def rebound(item):
    """Starts a test's bound anew: pytest-timeout ends it when a test fails, but a flaky one runs again, and fixtures end."""
    hooks = item.config.pluginmanager.hook
    hooks.pytest_timeout_cancel_timer(item=item)
    hooks.pytest_timeout_set_timer(item=item, settings=pytest_timeout._get_item_settings(item))


def pytest_unconfigure(config):
    for cluster in CLUSTERS.values():
        cluster.paused = False
        cluster.stop()
