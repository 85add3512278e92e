"""Many profiles at once: planning, the engines that run it, and a manifest so that nothing is lost or done twice."""

from symbolize.batch.engines.engine import Engine, Failure, Limits
from symbolize.batch.job import Batch, Plan, Shard, Watcher, new_run
from symbolize.batch.manifest import Handled, Manifest, State
from symbolize.batch.storage.inputs import Input
from symbolize.batch.tasks import Setup

__all__ = [
    "Batch",
    "Engine",
    "Failure",
    "Handled",
    "Input",
    "Limits",
    "Manifest",
    "Plan",
    "Setup",
    "Shard",
    "State",
    "Watcher",
    "new_run",
]
