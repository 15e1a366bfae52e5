"""What the pages of docs/, which are written for GitHub, need on the site."""

import os
import re

_FENCE = re.compile(r"^(\s*```)(\w+) .*$", re.M)
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s:]+)(#[^)\s]*)?\)")
_ITEM = re.compile(r"^( *)(\d+\.|[-*]) +")


def on_config(config):
    """Fills the lists of the navigation that are directories."""

    def fill(entries):
        for entry in entries:
            for title, value in entry.items():
                if value == "RUNBOOKS":
                    entry[title] = _pages(config, "runbooks")
                elif value == "DEV":
                    entry[title] = _pages(config, "dev")
                elif isinstance(value, list):
                    fill(value)

    fill(config["nav"])
    return config


def _pages(config, directory):
    root = config["docs_dir"]
    found = []
    for where, _, names in os.walk(os.path.join(root, directory)):
        found += [os.path.relpath(os.path.join(where, n), root) for n in names if n.endswith(".md")]
    return sorted(found)


def on_page_markdown(markdown, page, config, files):
    """Drops what marks runnable blocks, indents lists as Python-Markdown wants it, and names files outside of docs/."""
    markdown = _FENCE.sub(r"\1\2", markdown)

    def link(found):
        text, target, anchor = found.group(1), found.group(2), found.group(3) or ""
        path = os.path.normpath(os.path.join(os.path.dirname(page.file.src_uri), target))
        if path.startswith(".."):
            name = os.path.normpath(os.path.join("docs", path))
            return text if text == name else f"{text} (`{name}` in the source)"
        return f"[{text}]({target}{anchor})"

    return _indent(_LINK.sub(link, markdown))


def _indent(markdown):
    """What belongs to an item of a list is indented by four columns, not by the width of the item's mark."""
    out, width, fenced = [], 0, False
    for line in markdown.split("\n"):
        bare = line.lstrip(" ")
        indent = len(line) - len(bare)
        item = _ITEM.match(line)
        if item and not item.group(1) and not fenced:
            width = len(item.group(0))
        elif bare and indent < width and not fenced:
            width = 0
        elif bare and width:
            line = " " * (indent - width + 4) + bare
        if bare.startswith("```"):
            fenced = not fenced
        out.append(line)
    return "\n".join(out)
