"""Tables as kubectl prints them. Pure."""

import re


def parse_table(text: str) -> list[dict[str, str]]:
    """The rows by the words of the header; columns begin where the header's words do, so a cell may be empty."""
    header, *lines = text.splitlines()
    starts = [found.start() for found in re.finditer(r"\S+(?: \S+)*", header)]
    names = [found.group() for found in re.finditer(r"\S+(?: \S+)*", header)]
    ends = [*starts[1:], None]
    return [
        {name: line[start:end].strip() for name, start, end in zip(names, starts, ends, strict=True)} for line in lines
    ]


def parse_header(text: str) -> list[str]:
    """The words of the header."""
    return text.splitlines()[0].split()
