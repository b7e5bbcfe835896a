"""The order of the tiers, and what `make test` says and answers when one fails or cannot run."""

import pytest

from hack.tiers import ALONE, CLUSTER, WITH_TOOLS, Run, decide_exit, describe


def test_end_to_end_comes_last_and_what_needs_no_tools_first() -> None:
    assert ALONE[-1] == "test-unit"
    assert CLUSTER not in (*ALONE, *WITH_TOOLS)


def test_nothing_runs_after_a_failure() -> None:
    run = Run()
    assert run.time("lint", lambda: True)
    assert not run.time("types", lambda: False)
    assert not run.time("test-unit", lambda: pytest.fail("must not run"))
    assert run.failed == "types"
    assert list(run.seconds) == ["lint", "types"]
    assert describe(run, ci=False)[-1] == "FAILED: make types"
    assert decide_exit(run, ci=False) == 1


@pytest.mark.parametrize(("ci", "code"), [(False, 0), (True, 1)])
def test_a_machine_without_a_cluster_is_told_what_it_left_out(ci: bool, code: int) -> None:
    run = Run(left_out="root is needed to make network namespaces.")
    last = describe(run, ci=ci)[-1]
    assert last.startswith("LEFT OUT: the end-to-end tests, since this machine cannot hold a cluster: root is needed")
    assert ("CI=true" in last) is ci
    assert decide_exit(run, ci=ci) == code


def test_all_well_is_a_table_of_times() -> None:
    run = Run(seconds={"lint": 1.25, "test-unit": 20.0})
    assert describe(run, ci=True) == ["", "lint                 1.2 s", "test-unit           20.0 s"]
    assert decide_exit(run, ci=True) == 0
