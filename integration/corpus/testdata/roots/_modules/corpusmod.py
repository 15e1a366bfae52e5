def values():
    return {"int": 1, "float": 1.5, "none": None, "true": True, "list": [1, "two", [3]], "map": {"a": {"b": "c"}}, "text": "grüße"}


def large():
    return "x" * 20000


def broken():
    raise ValueError("a broken module")
