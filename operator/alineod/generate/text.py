"""How generated files look: YAML without aliases in the order given, and a line that says where it came from."""

from typing import Any

import yaml

COMMAND = "make generate"
WIDTH = 110


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def render_yaml(*documents: Any) -> str:
    """One or more documents."""
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=WIDTH, allow_unicode=True)


def build_banner(source: str) -> str:
    """A comment for the head of a generated YAML file; `source` is where to make a change instead."""
    return f"# Written by `{COMMAND}` from {source}. Change it there.\n"


def build_page_banner(source: str) -> str:
    """The same for Markdown."""
    return f"<!-- Written by `{COMMAND}` from {source}. Change it there. -->\n\n"
