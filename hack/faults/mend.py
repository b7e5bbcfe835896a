"""What rows stand on: a cluster that is whole, the parts on the node that no row strikes alone, the release."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hack.demo.forward import Forward
from hack.demo.install import PARTS, RELEASE, SYSTEM, build_images, install_chart, install_parts, load_images
from hack.demo.run import DemoError
from hack.demo.target import Kind, Target, have_cluster
from hack.faults.run import Site
from hack.faults.stage import KEPT, STRUCK
from tests.support.e2e_parts import Bucket, ScriptedModel, clear_environment
from tests.support.e2e_world import Release, World

STORE = 8333
CONTROL = 8080


@contextmanager
def having_site(folder: Path, say: Callable[[str], None]) -> Iterator[Site]:
    """Cluster, parts and release, from nothing where they are not there."""
    clear_environment()
    target = have_cluster(os.environ)
    if target.kind is not Kind.DEV:
        raise DemoError("nodes are cut and processes killed in the development cluster alone: leave CLUSTER out")
    images = build_images(show=False)
    load_images(target, images)
    target.kubectl("cordon", STRUCK)
    # What another run has left there goes to the other node: a model that is struck too forgets which gates are open.
    left = f"--field-selector=spec.nodeName={STRUCK}"
    target.kubectl("delete", "pods", "--all", f"--namespace={PARTS}", left, "--wait=true", check=False)
    install_parts(target, images)
    target.kubectl("uncordon", STRUCK)
    install_chart(target, images)
    with ExitStack() as stack:
        bucket = stack.enter_context(Forward(target, PARTS, "service/bucket", STORE))
        world = World(target, Release())
        stack.callback(world.kube.session.close)
        control = stack.enter_context(Forward(target, SYSTEM, f"service/{world.release.fullname}", CONTROL))
        yield Site(world, images, Bucket(bucket), ScriptedModel(target), control, folder, say)


def mend(target: Target) -> None:
    """Whatever a row before has left behind: nodes that are off or take no pods, a bucket that is scaled away.

    Raises:
        DemoError: something does not come back.
    """
    have_cluster(os.environ)
    target.kubectl("uncordon", KEPT, STRUCK)
    target.kubectl("scale", "deployment/bucket", f"--namespace={PARTS}", "--replicas=1")
    for namespace, name in ((PARTS, "bucket"), (PARTS, "scripted-model"), (SYSTEM, RELEASE)):
        target.kubectl("rollout", "status", f"deployment/{name}", f"--namespace={namespace}", "--timeout=180s")
