"""The cluster before one master of the suite: its nodes, and HAProxy where it has several."""

import pathlib
import subprocess
import time

from node import LOGS, Node, end, reaches, spawn


def note(text):
    """Writes a line into front.log, which says what the plugin did and when."""
    LOGS.mkdir(parents=True, exist_ok=True)
    with open(LOGS / "front.log", "a", encoding="utf-8") as log:
        log.write(f"{time.strftime('%H:%M:%S')} {text}\n")


class Cluster:
    """Hooks of a salt-master factory: start before the master, check when it runs, stop after it."""

    def __init__(self, factory, number, size):
        self.factory = factory
        self.number, self.size = number, size
        self.address = factory.config["interface"]
        self.ports = factory.config["publish_port"], factory.config["ret_port"]
        self.paused = False  # a test has stopped the master and will start it again
        self.formed = False
        self.haproxy = None
        root = pathlib.Path(factory.config["root_dir"])
        self.nodes = [Node(self, 1, root, pathlib.Path(factory.config["conf_file"]).parent)]
        for i in range(2, size + 1):
            other = root.with_name(f"{root.name}-node{i}")
            self.nodes.append(Node(self, i, other, other / "conf"))

    def start(self):
        """Starts the first node's saltclusterd, before its master, and other nodes that were members before."""
        self.nodes[0].start_daemon()
        for node in self.nodes[1:]:
            if node.joined:
                node.start_daemon()
                node.start_master()
        note(f"start {self.factory.id} at {self.address}:{self.ports}, master at {self.nodes[0].inner}")

    def check(self, timeout_at):
        """Makes a cluster of the nodes when their masters run first, and waits until minions are served."""
        try:
            return self.serve(timeout_at)
        except (subprocess.TimeoutExpired, RuntimeError) as err:
            note(f"{self.factory.id}: {err}")
            return False

    def serve(self, timeout_at):
        first, *others = self.nodes
        if not self.formed:
            if not first.wait_for_master(timeout_at) or not self.ctl(first, "bootstrap", "--timeout", "60s"):
                return False
            self.formed = True
        for node in others:
            if node.daemon is None or node.daemon.poll() is not None:
                node.copy_master(first)
                node.start_daemon()
            if not node.joined:
                if not node.wait_for_socket(timeout_at):
                    return False
                node.joined = self.ctl(node, "join", first.inner, "--wait=false", "--timeout", "30s")
            node.start_master()
            if not node.wait_for_ports(timeout_at):
                return False
        if others:
            self.start_haproxy()
        while time.time() < timeout_at:
            if all(reaches(self.address, port) for port in self.ports):
                return True
            time.sleep(0.1)
        return False

    def ctl(self, node, *args):
        """Runs saltclusterctl; that the node is a member already (7) is as good."""
        result = node.ctl(*args, timeout=90)
        note(f"{node.name} {args[0]}: {result.returncode} {result.stdout.strip()} {result.stderr.strip()}")
        return result.returncode in (0, 7)

    def start_haproxy(self):
        """HAProxy as `saltclusterctl haproxy` configures it for these nodes, with as many connections as the suite's limit
        of open files leaves it."""
        if self.haproxy is not None and self.haproxy.poll() is None:
            return
        servers = [arg for node in self.nodes for arg in ("--server", f"{node.name}={node.outer}")]
        path = self.nodes[0].conf_dir / "haproxy.cfg"
        result = self.nodes[0].ctl("haproxy", "--bind", self.address, *servers, "--file", str(path), timeout=30)
        if result.returncode != 0:
            raise RuntimeError(f"saltclusterctl haproxy: {result.stderr}")
        self.haproxy = spawn(f"haproxy-{self.number:03d}", ["haproxy", "-db", "-n", "4000", "-f", str(path)])

    def stop(self):
        """Stops the first node, and all others too unless the test will start its master again."""
        self.nodes[0].save_status()
        self.nodes[0].stop_daemon()
        if self.paused:
            return
        for node in self.nodes[1:]:
            node.stop_daemon()
            node.stop_master()
        end(self.haproxy)
        self.haproxy = None
