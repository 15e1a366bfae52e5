def changed(name, **_):
    return {"name": name, "result": True, "comment": "grüße", "changes": {"old": None, "new": [1, {"a": 1.5}]}}


def broken(name):
    raise ValueError(name)
