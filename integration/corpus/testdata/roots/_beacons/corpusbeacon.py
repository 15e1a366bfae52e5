def validate(_):
    return True, "valid"


def beacon(_):
    return [{"tag": "grüße", "n": 1}, {"list": [1, None, True]}]
