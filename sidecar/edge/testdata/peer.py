"""A peer on libzmq through pyzmq, as Salt uses it. Exits 0 when all is well.

    peer.py req PORT     REQ and DEALER clients of all sizes, some at once
    peer.py sub PORT     SUB clients: reads publications up to the body "end"
    peer.py router       a ROUTER that echoes; prints its port
    peer.py pub          a PUB that publishes to every new subscriber; prints its port
    peer.py unread HEX   Salt's own minion and syndic take a publication, and do nothing with it
"""
import sys

import zmq

ctx = zmq.Context()


def sock(kind, port, **opts):
    s = ctx.socket(kind)
    s.setsockopt(zmq.LINGER, 0)
    for name, value in opts.items():
        s.setsockopt(getattr(zmq, name), value)
    s.connect("tcp://127.0.0.1:%s" % port)
    return s


def req(port):
    for size in (0, 1, 200, 255, 256, 9000, 1 << 20, 5 << 20):
        s = sock(zmq.REQ, port, IDENTITY=b"salt-req/minion/web1/7868/%d" % size, HEARTBEAT_IVL=50, HEARTBEAT_TIMEOUT=5000)
        for _ in range(3):
            s.send(b"x" * size)
            assert s.recv_multipart() == [b"x" * size], size
    many = [sock(zmq.REQ, port) for _ in range(50)]
    for round in range(5):
        for i, s in enumerate(many):
            s.send(b"%d %d" % (round, i))
        for i, s in enumerate(many):
            assert s.recv() == b"%d %d" % (round, i)
    d = sock(zmq.DEALER, port)
    for i in range(200):
        d.send_multipart([b"hop", b"%d" % i, b"", b"body %d" % i])
    seen = sorted(int(p[1]) for p in (d.recv_multipart() for _ in range(200)) if p[0] == b"hop" and p[3] == b"body " + p[1])
    assert seen == list(range(200)), seen


def sub(port):
    plain = sock(zmq.SUB, port, SUBSCRIBE=b"", HEARTBEAT_IVL=50, HEARTBEAT_TIMEOUT=5000, HEARTBEAT_TTL=5000)
    topics = sock(zmq.SUB, port, SUBSCRIBE=b"broadcast")
    topics.setsockopt(zmq.SUBSCRIBE, b"0123abcd")
    topics.setsockopt(zmq.SUBSCRIBE, b"gone")
    topics.setsockopt(zmq.UNSUBSCRIBE, b"gone")
    monitors = [s.get_monitor_socket(zmq.EVENT_DISCONNECTED) for s in (plain, topics)]
    print("subscribed", flush=True)
    want = None
    while True:
        p = plain.recv_multipart()
        assert len(p) == 1, p
        if p[0] == b"end":
            break
        if want is not None:
            assert int(p[0].split()[0]) == want, (p[0][:20], want)
        want = int(p[0].split()[0]) + 1
    got = []
    while True:
        p = topics.recv_multipart()
        assert len(p) == 2, p
        if p[1] == b"end":
            break
        got.append((p[0], p[1][:6]))
    assert (b"0123abcd", b"for me") in got and (b"gone", b"for me") not in got, got[-3:]
    assert got.count((b"0123abcd", b"for me")) == 1
    assert want is not None and len(got) >= want, (len(got), want)
    assert not any(m.poll(0) for m in monitors), "disconnected meanwhile"


def router():
    s = ctx.socket(zmq.ROUTER)
    s.setsockopt(zmq.HEARTBEAT_IVL, 50)
    s.setsockopt(zmq.HEARTBEAT_TIMEOUT, 500)
    print(s.bind_to_random_port("tcp://127.0.0.1"), flush=True)
    while True:
        s.send_multipart(s.recv_multipart())


def pub():
    s = ctx.socket(zmq.XPUB)
    s.setsockopt(zmq.HEARTBEAT_IVL, 50)
    s.setsockopt(zmq.HEARTBEAT_TIMEOUT, 500)
    print(s.bind_to_random_port("tcp://127.0.0.1"), flush=True)
    while True:
        topic = s.recv()
        if topic[:1] == b"\x01":
            s.send_multipart([topic[1:] + b"x", b"hello"])


def unread(body):
    import asyncio
    import inspect

    import salt.channel.client
    import salt.minion
    import salt.payload

    def finished(x):
        if inspect.isawaitable(x) and not hasattr(x, "result"):
            return asyncio.run(x)
        return x.result() if hasattr(x, "result") else x  # 3006: a future of its tornado, done already

    channel = object.__new__(salt.channel.client.AsyncPubChannel)
    channel.opts = {"sign_pub_messages": True}
    payload = finished(channel._decode_payload(salt.payload.loads(bytes.fromhex(body))))
    for kind in (salt.minion.Minion, salt.minion.Syndic):
        m = object.__new__(kind)  # without what it would work with: whatever it does is an error
        try:
            assert finished(m._handle_payload(payload)) is None
        finally:
            kind.__del__ = lambda self: None


{"req": req, "sub": sub, "router": router, "pub": pub, "unread": unread}[sys.argv[1]](*sys.argv[2:])
