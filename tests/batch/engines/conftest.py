"""A cluster, and each engine."""

from collections.abc import Iterator

import pytest

from symbolize.batch.engines.engine import Engine
from symbolize.batch.engines.local import LocalEngine
from tests.support.batch_runs import wait_until
from tests.support.engines import PATIENCE, Cluster
from tests.support.needs import package


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster of two workers."""
    package("distributed")
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), 2)
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module", params=["local", "dask"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Each engine, with two workers."""
    if request.param == "local":
        with LocalEngine(2) as local:
            yield local
        return
    address = request.getfixturevalue("cluster").address
    from symbolize.batch.engines.cluster import DaskEngine

    with DaskEngine(address, PATIENCE) as dask:
        wait_until(lambda: len(dask._client.nthreads()) == 2)
        yield dask
