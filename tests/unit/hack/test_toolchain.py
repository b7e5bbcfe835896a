"""The toolchain: what is made when, in which order, and what a person reads when a machine lacks something."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hack.toolchain import machine, programs
from hack.toolchain.errors import ToolchainError, UnableError
from hack.toolchain.fingerprint import compute_fingerprint, go_sources
from hack.toolchain.layout import Layout, find_cache
from hack.toolchain.main import STEPS, carry_out_all, main, order, parse_targets
from hack.toolchain.progress import run, spell
from hack.toolchain.step import Context, Directory, Programs, Step, Task, carry_out

CHECKOUT = Path(__file__).parents[3]


@pytest.fixture
def context(tmp_path: Path) -> Context:
    return Context(Layout(tmp_path / "checkout", tmp_path / "cache"), {"PATH": "/usr/bin:/bin"}, "python3")


def installing(build: Callable[[Context, Path], None], fingerprint: str = "1") -> Directory:
    return Directory("tool", (), "no time", lambda _: fingerprint, build)


def wait_for(ask: Callable[[], Any]) -> Any:
    """The first true answer; whoever waits for ever has failed."""
    deadline = time.monotonic() + 30
    while not (answer := ask()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return answer


def is_running(pid: int) -> bool:
    """Whether a process is there and not merely waiting to be collected."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def write_file(context: Context, made: Path) -> None:
    (made / "file").write_text("made")


class TestOrder:
    def test_needs_come_first_and_once(self) -> None:
        names = [step.name for step in order(["pi", "kube", "venv"], STEPS)]
        assert sorted(names) == sorted(set(names))
        for step in order(["pi", "kube", "venv"], STEPS):
            assert all(names.index(need) < names.index(step.name) for need in step.needs)

    @pytest.mark.parametrize(
        ("words", "names"),
        [
            (["go"], ["gotool"]),
            (["kube", "helm"], ["kube", "helm"]),
            (["all"], [s for s in STEPS if s not in ("doctor", "gocheck")]),
        ],
    )
    def test_targets(self, words: list[str], names: list[str]) -> None:
        assert parse_targets(words) == names

    def test_an_unknown_target_is_told_the_known_ones(self) -> None:
        with pytest.raises(ToolchainError, match=r"no target 'cube': there are uv, .*kube.*all"):
            parse_targets(["cube"])

    def test_the_command_line_reports_it(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["cube"], CHECKOUT) == 1
        assert "no target 'cube'" in capsys.readouterr().err
        assert main(["help"], CHECKOUT) == 0
        usage = capsys.readouterr().out
        assert all(f"  {name} " in usage for name in STEPS if name != "gotool")


class TestCarryingOut:
    def test_an_installed_directory_is_made_once(self, context: Context) -> None:
        calls: list[Path] = []

        def build(_: Context, made: Path) -> None:
            calls.append(made)
            write_file(context, made)

        carry_out(installing(build), context)
        carry_out(installing(build), context)
        assert len(calls) == 1
        assert (context.layout.link("tool") / "file").read_text() == "made"

    def test_new_inputs_make_a_new_one_beside_the_old(self, context: Context) -> None:
        carry_out(installing(write_file, "1"), context)
        carry_out(installing(write_file, "2"), context)
        assert context.layout.link("tool").resolve() == context.layout.installed("tool", "2")
        assert context.layout.installed("tool", "1").is_dir()

    def test_a_failure_half_way_leaves_no_half(self, context: Context) -> None:
        def fail(_: Context, made: Path) -> None:
            write_file(context, made)
            raise ToolchainError("half-way")

        with pytest.raises(ToolchainError, match="half-way"):
            carry_out(installing(fail), context)
        assert not context.layout.link("tool").exists()
        carry_out(installing(write_file), context)
        assert [path.name for path in context.layout.link("tool").iterdir()] == ["file"]

    def test_what_a_killed_run_left_is_not_taken_over(self, context: Context) -> None:
        left = context.layout.cache / ".tool.new"
        left.mkdir(parents=True)
        (left / "half").touch()
        carry_out(installing(write_file), context)
        assert [path.name for path in context.layout.link("tool").iterdir()] == ["file"]

    def test_a_directory_put_there_by_hand_is_kept(self, context: Context) -> None:
        by_hand = context.layout.link("tool")
        by_hand.mkdir(parents=True)
        (by_hand / "mine").touch()
        carry_out(installing(write_file), context)
        assert context.layout.link("tool").is_symlink()
        assert [path.name for path in context.layout.cache.glob("tool.by-hand-*/*")] == ["mine"]

    def test_programs_are_rebuilt_when_inputs_change_or_one_is_gone(self, context: Context) -> None:
        calls: list[str] = []

        def building(fingerprint: str) -> Programs:
            def build(_: Context, made: Path) -> None:
                calls.append(fingerprint)
                for name in ("one", "two"):
                    (made / name).write_text(fingerprint)

            return Programs("pair", (), "no time", ("one", "two"), lambda _: fingerprint, build)

        for fingerprint in ("1", "1", "2", "2"):
            carry_out(building(fingerprint), context)
        (context.layout.bin / "two").unlink()
        carry_out(building("2"), context)
        assert calls == ["1", "2", "2"]
        assert (context.layout.bin / "one").read_text() == "2"

    def test_two_runs_do_a_step_once(self, context: Context) -> None:
        calls: list[str] = []
        entered, go_on = threading.Event(), threading.Event()

        def build(_: Context, made: Path) -> None:
            calls.append("built")
            entered.set()
            assert go_on.wait(60)
            write_file(context, made)

        first = threading.Thread(target=carry_out, args=(installing(build), context))
        second = threading.Thread(target=carry_out, args=(installing(build), context))
        first.start()
        assert entered.wait(60)
        second.start()
        go_on.set()
        first.join()
        second.join()
        assert calls == ["built"]

    def test_a_failed_need_stops_what_needs_it(self, context: Context) -> None:
        acted: list[str] = []

        def fail(_: Context) -> None:
            raise ToolchainError("no")

        steps: list[Step] = [
            Task("first", (), fail),
            Task("second", ("first",), lambda _: acted.append("second")),
            Task("other", (), lambda _: acted.append("other")),
        ]
        with pytest.raises(ToolchainError, match="no"):
            carry_out_all(steps, context)
        assert acted == ["other"]


class TestPrograms:
    def test_the_kubernetes_version_is_the_modules(self) -> None:
        go_mod = (CHECKOUT / "hack/devcluster/go.mod").read_text()
        version = programs.parse_version(go_mod, "k8s.io/kubernetes")
        flags = programs.build_kube_flags(version)
        minor = version.split(".")[1]
        assert f"gitVersion={version} " in flags
        assert f"gitMinor={minor} " in flags

    def test_helm_has_a_version(self) -> None:
        assert programs.parse_version((CHECKOUT / "hack/helm/go.mod").read_text(), "helm.sh/helm/v4").startswith("v4.")

    def test_a_module_that_is_not_required_is_named(self) -> None:
        with pytest.raises(ToolchainError, match="no release of example"):
            programs.parse_version("module x\n", "example")

    @pytest.mark.parametrize(
        ("written", "word"),
        [
            ("", ""),
            ("go: downloading a v1\ngo: downloading b v1\n", "2 modules downloaded"),
            ("go: downloading a v1\nfmt\nnet\n", "2 of about 9 packages compiled"),
        ],
    )
    def test_how_far_a_build_is(self, written: str, word: str) -> None:
        assert programs.describe_build(9)(written) == word


class TestFingerprint:
    def test_every_input_counts(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("1")
        first = compute_fingerprint(["x"], [tmp_path / "a"], tmp_path)
        assert first == compute_fingerprint(["x"], [tmp_path / "a"], tmp_path)
        others = {compute_fingerprint(["y"], [tmp_path / "a"], tmp_path)}
        (tmp_path / "a").write_text("2")
        others.add(compute_fingerprint(["x"], [tmp_path / "a"], tmp_path))
        (tmp_path / "a").rename(tmp_path / "b")
        others.add(compute_fingerprint(["x"], [tmp_path / "b"], tmp_path))
        assert len(others | {first}) == 4

    def test_go_tests_do_not_count(self, tmp_path: Path) -> None:
        for name in ("main.go", "main_test.go", "notes.md"):
            (tmp_path / name).touch()
        assert [path.name for path in go_sources(tmp_path)] == ["main.go"]


@pytest.mark.parametrize(
    ("env", "cache"),
    [
        ({"ALINEOD_CACHE": "/a", "XDG_CACHE_HOME": "/x"}, "/a"),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/alineod"),
        ({"HOME": "/h"}, "/h/.cache/alineod"),
        ({}, "/root/.cache/alineod"),
    ],
)
def test_find_cache(env: dict[str, str], cache: str) -> None:
    assert find_cache(env) == Path(cache)


READY = machine.Facts("Linux x86_64", "python3", True, True, True, True, (), 100 * machine.GIB, True)


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        (replace(READY, system="Darwin arm64"), "Use such a machine"),
        (replace(READY, pip=False, uv=False), "apt-get install --no-install-recommends python3-pip"),
        (replace(READY, missing_packages=("runc", "buildah")), "toolchain.py packages"),
        (replace(READY, missing_packages=("runc", "buildah"), root=False), "recommends runc buildah` as root"),
        (replace(READY, missing_packages=("runc",), apt=False), "no apt-get"),
        (replace(READY, free_disk=5 * machine.GIB, built=False), "5.0 GiB are free in /c, 14 GiB are needed"),
        (replace(READY, free_disk=machine.GIB), "ALINEOD_CACHE"),
    ],
)
def test_what_is_missing_is_said_with_what_to_do(facts: machine.Facts, sentence: str) -> None:
    sentences = machine.judge(facts, Path("/c"))
    assert len(sentences) == 1
    assert sentence in sentences[0]


def test_a_ready_machine_misses_nothing() -> None:
    assert machine.judge(READY, Path("/c")) == []
    assert machine.judge(replace(READY, pip=False), Path("/c")) == []
    assert machine.judge(replace(READY, free_disk=5 * machine.GIB), Path("/c")) == []


class TestRunning:
    def test_a_failure_shows_the_end_of_the_log(self, tmp_path: Path) -> None:
        with pytest.raises(ToolchainError, match=r"sh failed with exit code 3; the end of .*log:\nwhy"):
            run("tool", ["sh", "-c", "echo why; exit 3"], log=tmp_path / "log", env={"PATH": "/usr/bin:/bin"})

    def test_a_missing_program_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(ToolchainError, match=r"/no/such"):
            run("tool", ["/no/such"], log=tmp_path / "log", env={})

    def test_a_killed_run_leaves_no_program_behind(self, tmp_path: Path) -> None:
        script = (
            "import pathlib, sys\nfrom hack.toolchain.progress import run\n"
            "words, env = ['sh', '-c', 'echo $$ > pid; exec sleep 60'], {'PATH': '/usr/bin:/bin'}\n"
            "run('tool', words, log=pathlib.Path('log'), env=env)"
        )
        env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(CHECKOUT)}
        runner = subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, env=env)
        pid = wait_for(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
        runner.kill()
        runner.wait()
        assert wait_for(lambda: not is_running(int(pid)))

    @pytest.mark.parametrize(("seconds", "text"), [(0.4, "0s"), (59.4, "59s"), (185.0, "3m 05s")])
    def test_spell(self, seconds: float, text: str) -> None:
        assert spell(seconds) == text


def test_only_a_machines_lack_has_an_exit_code_of_its_own() -> None:
    assert (ToolchainError("").exit_code, UnableError("").exit_code) == (1, 3)
