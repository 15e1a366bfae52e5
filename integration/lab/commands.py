# Runs Salt's commands, each in a fork of this process, which has imported what they import: most of what they take otherwise.
# commands.py SOCKET. A connection is one command: its message is a JSON object (argv, dir, env) with two descriptors, standard
# output and error. The answers are the process id and, when it has ended, the exit code.
import gc, importlib, json, os, selectors, socket, sys

for name in ("salt.scripts", "salt.cli.salt", "salt.cli.run", "salt.cli.key", "salt.cli.call", "salt.cli.caller", "salt.client",
             "salt.runner", "salt.minion", "salt.key", "salt.output", "salt.state", "salt.utils.job"):
    importlib.import_module(name)
import salt.scripts

entries = {"salt": salt.scripts.salt_main, "salt-run": salt.scripts.salt_run, "salt-key": salt.scripts.salt_key,
           "salt-call": salt.scripts.salt_call}

listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(sys.argv[1] + ".new")
listener.listen(16)
os.rename(sys.argv[1] + ".new", sys.argv[1])
os.chdir("/")
ready = selectors.DefaultSelector()
ready.register(listener, selectors.EVENT_READ)
gc.collect()
gc.freeze()


def begin():
    connection, _ = listener.accept()
    message, fds, _, _ = socket.recv_fds(connection, 1 << 20, 2)
    if len(fds) != 2:
        connection.close()
        return
    pid = os.fork()
    if pid == 0:
        for n, fd in enumerate(fds):
            os.dup2(fd, n + 1)
            os.close(fd)
        for other in (listener, connection, ready):
            other.close()
        order = json.loads(message)
        os.chdir(order["dir"])
        os.environ.clear()
        os.environ.update(e.split("=", 1) for e in order["env"])
        sys.argv = order["argv"]
        sys.exit(entries[os.path.basename(sys.argv[0])]())  # as the command does, with all that ends with a program
    for fd in fds:
        os.close(fd)
    connection.send(str(pid).encode())
    ready.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, connection))


def end(fd, pid, connection):
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    ready.unregister(fd)
    os.close(fd)
    try:
        connection.send(str(code if code >= 0 else 128 - code).encode())
    except OSError:
        pass  # who asked is gone
    connection.close()


while True:
    for key, _ in ready.select():
        if key.data is None:
            begin()
        else:
            end(key.fd, *key.data)
