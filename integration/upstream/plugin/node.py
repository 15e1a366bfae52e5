"""One member of a cluster: saltclusterd, and from the second node on a stock master of its own."""

import ctypes
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

import yaml

BIN = os.environ["FRONT_BIN"]
SALT_MASTER = os.environ["FRONT_SALT_MASTER"]
LOGS = pathlib.Path(os.environ["FRONT_LOG"])
SECRET = "0123456789abcdefghijklmnopqrstuv-test"
# Options of the test's master that belong to the test: its other nodes have masters that log nothing into pytest.
OF_THE_TEST = ("engines", "engines_dirs", "log_handlers_dirs", "pytest-master", "reactor", "event_return", "conf_file", "id")
SHARED = ("file_roots", "pillar_roots", "ext_pillar")


def spawn(name, argv):
    """Starts a process that ends with this one and logs below FRONT_LOG."""
    LOGS.mkdir(parents=True, exist_ok=True)
    with open(LOGS / f"{name}.log", "ab") as log:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=die_with_parent)


def die_with_parent():
    ctypes.CDLL("libc.so.6").prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def end(process):
    """Ends a process, by force after 15 seconds."""
    if process is None or process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def reaches(address, port):
    """Whether somebody listens there."""
    with socket.socket() as s:
        s.settimeout(2)
        return s.connect_ex((address, port)) == 0


class Node:
    def __init__(self, cluster, index, root, conf_dir):
        self.cluster = cluster
        self.root, self.conf_dir = root, conf_dir
        self.name = f"m{cluster.number}-{index}"
        self.inner = f"127.77.{index}.{cluster.number}"  # the master's
        self.outer = cluster.address if cluster.size == 1 else f"127.78.{index}.{cluster.number}"  # saltclusterd's
        self.run_dir = pathlib.Path(f"/tmp/sc{cluster.number}-{index}")  # short: a socket's path has 107 characters at most
        self.config = conf_dir / "saltclusterd"
        self.daemon = self.master = None
        self.joined = False
        self.set_up = False

    def configure(self):
        """What the operator would write, and then what `saltclusterctl setup` makes of it."""
        (self.conf_dir / "master.d").mkdir(parents=True, exist_ok=True)
        (self.conf_dir / "master.d/interface.conf").write_text(f"interface: {self.inner}\n", encoding="utf-8")
        options = {
            "cluster_secret": SECRET,
            "interface": self.outer,
            "cluster_interface": self.inner,
            "cluster_advertise": self.inner,
            "run_dir": str(self.run_dir),
            # Several masters of a test share one address, and HAProxy asks each of three nodes at its own.
            "health_listen": f"{self.inner if self.cluster.size == 1 else self.outer}:4580",
            "drain_announce": "0s",
            "drain_time": "1s",
            # Tests delete all keys of their few minions at once, as programs do whose deletions would be held.
            "cluster_keys_max_delete": 100,
        }
        if self.cluster.size > 1:
            # The nodes share the test's roots, which it edits and uses at once; it listens to the first master's bus only.
            options.update(
                {"cluster_roots_sync": "off", "cluster_event_policy": {"*": "all"}, "cluster_event_mirror": ["salt/auth"]}
            )
        self.run_dir.mkdir(parents=True, exist_ok=True)
        self.config.write_text(yaml.safe_dump(options), encoding="utf-8")
        self.config.chmod(0o600)
        result = self.ctl(
            *("setup", "--yes", "--config-dir", str(self.conf_dir), "--salt-master", SALT_MASTER),
            *("--node", self.name, "--cluster-id", f"c{self.cluster.number}", "--timeout", "60s"),
            timeout=90,
        )
        if result.returncode != 0:
            raise RuntimeError(f"saltclusterctl setup: {result.stdout}{result.stderr}")
        self.set_up = True

    def start_daemon(self):
        if self.daemon is not None and self.daemon.poll() is None:
            return
        if not self.set_up:
            self.configure()
        name = f"saltclusterd-{self.name}-{self.cluster.factory.id}"
        self.daemon = spawn(name, [f"{BIN}/saltclusterd", "--config", str(self.config)])

    def stop_daemon(self):
        end(self.daemon)
        self.daemon = None

    def start_master(self):
        if self.master is None or self.master.poll() is not None:
            self.master = spawn(f"master-{self.name}", [SALT_MASTER, "-c", str(self.conf_dir), "-l", "warning"])

    def stop_master(self):
        end(self.master)
        self.master = None

    def ctl(self, *args, timeout):
        env = dict(os.environ, SALTCLUSTERD_CONFIG=str(self.config), SALTCLUSTERD_SOCKET=str(self.run_dir / "admin.sock"))
        return subprocess.run(
            [f"{BIN}/saltclusterctl", *args], env=env, capture_output=True, text=True, timeout=timeout, check=False
        )

    def save_status(self):
        """Keeps what the node says of itself before it stops."""
        if self.daemon is None or self.daemon.poll() is not None:
            return
        for verb in ("wall", "status"):
            try:
                result = self.ctl(verb, timeout=10)
                (LOGS / f"{verb}-{self.name}.txt").write_text(result.stdout + result.stderr, encoding="utf-8")
            except subprocess.TimeoutExpired:
                (LOGS / f"{verb}-{self.name}.txt").write_text("no answer within 10 s\n", encoding="utf-8")

    def copy_master(self, first):
        """Makes a second master that answers as the test's own."""
        if self.set_up:
            return
        old = str(first.root)
        config = yaml.safe_load((first.conf_dir / "master").read_text(encoding="utf-8"))
        for option in OF_THE_TEST:
            config.pop(option, None)
        for option, value in config.items():
            if isinstance(value, str) and option not in SHARED:
                config[option] = value.replace(old, str(self.root))
        for name in ("conf", "logs", "run"):
            (self.root / name).mkdir(parents=True, exist_ok=True)
        # Salt puts root_dir before every path of this option that is not below it.
        (self.root / "extension_modules").symlink_to(first.root / "extension_modules")
        if (first.root / "autosign_file").exists():
            shutil.copy(first.root / "autosign_file", self.root)
        (self.conf_dir / "master").write_text(yaml.safe_dump(config), encoding="utf-8")

    def wait_for_socket(self, timeout_at):
        return wait(timeout_at, (self.run_dir / "admin.sock").exists)

    def wait_for_master(self, timeout_at):
        """The master has its key and listens, and saltclusterd can be asked."""
        key = pathlib.Path(self.cluster.factory.config["pki_dir"]) / "master.pem"
        port = self.cluster.ports[1]
        return self.wait_for_socket(timeout_at) and wait(timeout_at, lambda: key.exists() and reaches(self.inner, port))

    def wait_for_ports(self, timeout_at):
        port = self.cluster.ports[1]
        return wait(timeout_at, lambda: reaches(self.outer, port) and reaches(self.inner, port))


def wait(timeout_at, condition):
    while time.time() < timeout_at:
        if condition():
            return True
        time.sleep(0.1)
    return False
