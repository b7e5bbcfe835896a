"""`alineod SUBCOMMAND`: what a person reads, and that every subcommand leads to something."""

import ast
from pathlib import Path

import pytest

from alineod.cli.main import COMMANDS, Command, main

SOURCE = Path(__file__).parents[3] / "operator"


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["help"]])
def test_help_lists_every_subcommand(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words, {}) == 0
    printed = capsys.readouterr().out
    assert all(f"  {name} " in printed for name in COMMANDS)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "a subcommand is missing: use one of operator, bridge,"),
        (["opreator"], "there is no subcommand 'opreator': use one of operator, bridge,"),
        (["bridge", "--port"], "bridge takes no arguments but got '--port': it is set by the environment"),
    ],
)
def test_a_wrong_call_says_what_to_write_instead(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words, {}) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_every_subcommand_leads_to_a_main(command: Command) -> None:
    path = SOURCE / command.module.replace(".", "/")
    tree = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text())
    mains = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "main"]
    assert len(mains) == 1
    assert len(mains[0].args.args) == (2 if command.takes_arguments else 1)


def test_says_which_library_the_image_lacks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(COMMANDS, "operator", Command("nowhere.at.all", ""))  # type: ignore[arg-type]
    assert main(["operator"], {}) == 1
    assert "operator cannot run here, nowhere is not installed" in capsys.readouterr().err


def test_passes_arguments_environment_and_exit_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "taker_of_words.py").write_text("def main(words, env): return len(words) + int(env['N'])\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(COMMANDS, "ledger", Command("taker_of_words", "", takes_arguments=True))  # type: ignore[arg-type]
    assert main(["ledger", "a", "b"], {"N": "40"}) == 42


def test_a_refusal_is_one_sentence_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "refuser.py").write_text(
        "from alineod.errors import Refused\ndef main(env): raise Refused('InvalidEnvironment', 'X is not set')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(COMMANDS, "operator", Command("refuser", ""))  # type: ignore[arg-type]
    assert main(["operator"], {}) == 1
    assert capsys.readouterr().err == "alineod: operator: X is not set (InvalidEnvironment)\n"
