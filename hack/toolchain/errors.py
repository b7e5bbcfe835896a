"""The two ways in which a step can fail, by what a caller can do about it.

ToolchainError
└── UnableError    this machine cannot do it as it is: exit code 3
"""


class ToolchainError(Exception):
    """A step failed; the message says which, why and what to do."""

    exit_code = 1


class UnableError(ToolchainError):
    """The machine lacks something that a person must give it."""

    exit_code = 3
