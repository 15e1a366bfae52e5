"""A module of the lab, to see that modules are synchronised."""


def hello(name="world"):
    return "hello " + name
