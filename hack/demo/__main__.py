"""`python3 -m hack.demo [up|down]`: the demo from an empty machine to the proof, and its removal.

Exit codes: 0 everything was as it should be; 1 something was not, told in a sentence; 3 this machine cannot hold the
cluster.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence

from hack.demo import story
from hack.demo.api import ControlApi
from hack.demo.forward import Forward
from hack.demo.install import (
    PARTS,
    RELEASE,
    SYSTEM,
    build_images,
    install_chart,
    install_parts,
    load_images,
    remove_everything,
)
from hack.demo.run import DemoError
from hack.demo.show import Show
from hack.demo.story import NAMESPACE, Stage
from hack.demo.target import CANNOT_HOLD, FAILED, Kind, Target, Unable, have_cluster

INSTEAD = (
    "The demo needs a Kubernetes cluster. Use your own: CLUSTER=kind make demo, or CLUSTER=current make demo with its "
    "context chosen; or run the tests that need none: make test."
)
STEPS: Sequence[tuple[str, Callable[[Stage], None]]] = (
    ("the swarm works until it is done", story.watch_tree),
    ("a worker's pod is deleted in the middle of its second turn", story.interrupt_worker),
    ("the worker comes back by Restore and is asked again", story.ask_worker),
    ("the finished lead's pod is deleted; it comes back and answers from memory", story.ask_lead),
)


def up(show: Show) -> None:
    """Everything, step by step."""
    with show.step("cluster"):
        target = have_cluster(os.environ, show=True)
        show.say(f"   context {target.context}")
    with show.step("images (built once, kept outside the checkout)"):
        images = build_images()
    with show.step("images into the nodes"):
        load_images(target, images)
    with show.step("a bucket (SeaweedFS) and a scripted model, in the cluster"):
        install_parts(target, images)
    with show.step(f"alineod, with Helm, into the namespace {SYSTEM}"):
        install_chart(target, images)
    with show.step("kubectl apply -f examples/survey.yaml"):
        story.apply_example(target, show)
    with Forward(target, SYSTEM, f"service/{RELEASE}", 8080) as forward:
        stage = Stage(target, show, ControlApi(forward, make_token(target)))
        for title, act in STEPS:
            with show.step(title):
                act(stage)
        story.print_ending(stage)
    print_outlook(show, target)


def make_token(target: Target) -> str:
    """The token of a person who may edit in the demo's namespace."""
    where = f"--namespace={NAMESPACE}"
    for words in (
        ("serviceaccount", "person"),
        ("rolebinding", "person", "--clusterrole=edit", f"--serviceaccount={NAMESPACE}:person"),
    ):
        target.kubectl(where, "create", *words, check=False)  # there already, from an earlier demo
    return target.kubectl(where, "create", "token", "person").out.strip()


def print_outlook(show: Show, target: Target) -> None:
    show.say("\nTimes:")
    show.table()
    env = 'eval "$(make -s env)"; ' if target.kind is Kind.DEV else ""
    show.say(f"\nGo on by hand:\n   {env}kubectl --namespace {NAMESPACE} get agents")
    show.say(f"   kubectl --namespace {NAMESPACE} describe agent {story.WORKER}")
    show.say("   make demo-down    removes what the demo installed")


def down(show: Show) -> None:
    """Take away what `up` installed. The cluster itself stays: `make cluster-down` stops it."""
    target = have_cluster(os.environ, show=True)
    with show.step(f"removing alineod and the namespaces {NAMESPACE}, {PARTS} and {SYSTEM}"):
        remove_everything(target, NAMESPACE)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m hack.demo", description=__doc__)
    parser.add_argument("verb", nargs="?", choices=["up", "down"], default="up")
    verb, show, begun = parser.parse_args(arguments).verb, Show(), time.monotonic()
    try:
        {"up": up, "down": down}[verb](show)
    except Unable as error:
        print(f"{error}\n{INSTEAD}", file=sys.stderr)
        return CANNOT_HOLD
    except DemoError as error:
        print(f"\nThe demo stops here: {error}", file=sys.stderr)
        return FAILED
    end = "All of it was so" if verb == "up" else "What the demo installed is gone"
    show.say(f"\n{end}, in {time.monotonic() - begun:.0f} s.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
