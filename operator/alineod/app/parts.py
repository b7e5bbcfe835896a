"""What lives as long as the process, made once and passed down."""

from collections.abc import Mapping
from dataclasses import dataclass

from alineod.app.serve import Switch
from alineod.bucket.port import Bucket
from alineod.checkpoints.keys import build_base
from alineod.clock import Clock
from alineod.kube.access import ClusterAccess
from alineod.kube.elector import Elector
from alineod.kube.health import Health
from alineod.metrics import Metrics
from alineod.settings import Settings


@dataclass(frozen=True)
class Parts:
    """`env` says where the bucket's keys are, for Litestream; `bucket` is None where there is none.

    All of it is made before the process contends for the lease: what takes its time then is not waited for later.
    """

    settings: Settings
    access: ClusterAccess
    clock: Clock
    metrics: Metrics
    elector: Elector
    health: Health
    switch: Switch
    bucket: Bucket | None
    env: Mapping[str, str]

    @property
    def base(self) -> str:
        """What every key in the bucket begins with."""
        prefix = self.settings.bucket.prefix if self.settings.bucket else ""
        return build_base(prefix, self.settings.instance)
