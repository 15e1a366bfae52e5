"""A stock master and minion on loopback under a temporary root, and taps to record what they say."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import yaml
import zmq


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def wait_for(what, condition, seconds=120):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.1)
    raise TimeoutError(f"waited {seconds} s in vain for {what}")


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as fp:
        fp.write(text)
    os.chmod(path, mode)


class Daemon:
    """One salt daemon in a process group of its own."""

    def __init__(self, tool, conf, log):
        self.log = open(log, "ab")  # pylint: disable=consider-using-with
        self.proc = subprocess.Popen(  # pylint: disable=consider-using-with
            [os.path.join(os.path.dirname(sys.executable), tool), "-c", conf, "-l", "warning"],
            stdout=self.log,
            stderr=self.log,
            start_new_session=True,
        )

    def stop(self):
        for sig in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.proc.pid, sig)
            except ProcessLookupError:
                break
            try:
                self.proc.wait(20)
            except subprocess.TimeoutExpired:
                continue
        self.log.close()


class Master:
    """A salt-master with a given key, listening on free loopback ports."""

    def __init__(self, root, private, public, **options):
        self.root, self.conf = root, os.path.join(root, "etc")
        self.pki, self.cache = os.path.join(root, "pki"), os.path.join(root, "cache")
        self.sock_dir = os.path.join(root, "run")
        self.ret_port, self.publish_port = free_port(), free_port()
        self.public = public
        write(os.path.join(self.pki, "master.pem"), private, 0o400)
        write(os.path.join(self.pki, "master.pub"), public)
        roots = os.path.join(root, "states")
        write(os.path.join(roots, "hello.txt"), "hello from the golden lab\n")
        write(os.path.join(root, "pillar", "top.sls"), "base:\n  '*': [golden]\n")
        write(os.path.join(root, "pillar", "golden.sls"), "golden: {answer: 42, text: vector}\n")
        config = {
            "interface": "127.0.0.1",
            "ret_port": self.ret_port,
            "publish_port": self.publish_port,
            "id": "golden_master",
            "user": "root",
            "pki_dir": self.pki,
            "cachedir": self.cache,
            "sock_dir": self.sock_dir,
            "pidfile": os.path.join(root, "master.pid"),
            "log_file": os.path.join(root, "master.log"),
            "token_dir": os.path.join(root, "tokens"),
            "file_roots": {"base": [roots]},
            "pillar_roots": {"base": [os.path.join(root, "pillar")]},
            "worker_threads": 3,
            "master_id": "golden-node",
            "timeout": 30,
            "enable_fqdns_grains": False,
            "signing_algorithm": "PKCS1v15-SHA1",
            "keys.cache_driver": "localfs_key",
        }
        config.update(options)
        write(os.path.join(self.conf, "master"), yaml.safe_dump(config))
        self.daemon = None

    def start(self):
        self.daemon = Daemon("salt-master", self.conf, os.path.join(self.root, "master.out"))
        wait_for("the master's request port", lambda: self._answers(self.ret_port))

    def _answers(self, port):
        """True when the workers behind the port answer, not only the listener."""
        if self.daemon.proc.poll() is not None:
            raise RuntimeError("salt-master ended")
        import salt.payload

        body = {"enc": "clear", "load": {"cmd": "ping"}, "version": 3}
        return request(port, salt.payload.dumps(body), timeout=2) is not None

    def accept(self, minion_id, public, state="minions"):
        write(os.path.join(self.pki, state, minion_id), public)

    def session(self, minion_id):
        with open(os.path.join(self.cache, "sessions", minion_id), encoding="ascii") as fp:
            return fp.read()

    def run(self, tool, *args):
        cmd = [os.path.join(os.path.dirname(sys.executable), tool), "-c", self.conf, *args]
        done = subprocess.run(cmd, capture_output=True, timeout=180, check=False)
        if done.returncode:
            sys.stderr.write(f"{tool} {args}: {done.stdout.decode()} {done.stderr.decode()}\n")
        return done

    def stop(self):
        self.daemon.stop()


class Minion:
    """A salt-minion that knows the tap's address only."""

    def __init__(self, root, minion_id, private, public, port, **options):
        self.root, self.conf = root, os.path.join(root, "etc")
        pki = os.path.join(root, "pki")
        write(os.path.join(pki, "minion.pem"), private, 0o400)
        write(os.path.join(pki, "minion.pub"), public)
        config = {
            "id": minion_id,
            "master": "127.0.0.1",
            "master_port": port,
            "user": "root",
            "pki_dir": pki,
            "cachedir": os.path.join(root, "cache"),
            "sock_dir": os.path.join(root, "run"),
            "extension_modules": os.path.join(root, "ext"),
            "pidfile": os.path.join(root, "minion.pid"),
            "log_file": os.path.join(root, "minion.log"),
            "sign_pub_messages": True,
            "minion_sign_messages": True,
            "enable_fqdns_grains": False,
            "autosign_grains": ["id", "no_such_grain"],
            "mine_functions": {"test.ping": []},
            "grains": {"golden": True},
            # A vector needs a few grains, not the description of the host it was recorded on.
            "grains_blacklist": ["*"],
        }
        config.update(options)
        write(os.path.join(self.conf, "minion"), yaml.safe_dump(config))
        self.daemon = Daemon("salt-minion", self.conf, os.path.join(root, "minion.out"))

    def stop(self):
        self.daemon.stop()


def request(port, body, timeout=30):
    """One REQ exchange; None when no answer came in time."""
    sock = zmq.Context.instance().socket(zmq.REQ)
    sock.linger = 0
    try:
        sock.connect(f"tcp://127.0.0.1:{port}")
        sock.send(body)
        return sock.recv() if sock.poll(timeout * 1000) else None
    finally:
        sock.close()


class Tap(threading.Thread):
    """Passes requests on to a port and keeps each with its answer."""

    def __init__(self, upstream):
        super().__init__(daemon=True)
        self.exchanges, self._open, self._ending = [], {}, threading.Event()
        context = zmq.Context.instance()
        self.front, self.back = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
        self.front.linger = self.back.linger = 0
        self.port = self.front.bind_to_random_port("tcp://127.0.0.1")
        self.back.connect(f"tcp://127.0.0.1:{upstream}")

    def run(self):
        # 3008's pooled router takes the third frame for the body, so one request is passed on at a time.
        waiting, poller = [], zmq.Poller()
        poller.register(self.front, zmq.POLLIN)
        poller.register(self.back, zmq.POLLIN)
        current = None
        while not self._ending.is_set():
            ready = dict(poller.poll(100))
            if self.front in ready:
                waiting.append(self.front.recv_multipart())
            if self.back in ready and current:
                body = self.back.recv_multipart()[-1]
                self.exchanges.append((current[-1], body))
                self.front.send_multipart([current[0], b"", body])
                current = None
            if current is None and waiting:
                current = waiting.pop(0)
                self.back.send_multipart([b"", current[-1]])

    def close(self):
        self._ending.set()
        self.join(5)
        self.front.close()
        self.back.close()


class Listener(threading.Thread):
    """Keeps every publication of a port."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.bodies, self._ending = [], threading.Event()
        self.sock = zmq.Context.instance().socket(zmq.SUB)
        self.sock.linger = 0
        self.sock.setsockopt(zmq.SUBSCRIBE, b"")
        self.sock.connect(f"tcp://127.0.0.1:{port}")

    def run(self):
        while not self._ending.is_set():
            if self.sock.poll(100):
                self.bodies.append(self.sock.recv_multipart()[-1])

    def close(self):
        self._ending.set()
        self.join(5)
        self.sock.close()


class BusTap(threading.Thread):
    """Keeps the raw byte stream of a master's event bus."""

    def __init__(self, sock_dir):
        super().__init__(daemon=True)
        self.stream, self._ending = bytearray(), threading.Event()
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(0.2)
        self.sock.connect(os.path.join(sock_dir, "master_event_pub.ipc"))

    def run(self):
        while not self._ending.is_set():
            try:
                data = self.sock.recv(65536)
            except TimeoutError:
                continue
            if not data:
                return
            self.stream += data

    def close(self):
        self._ending.set()
        self.join(5)
        self.sock.close()
