"""The servers and object stores that files are fetched from by build id, as one client."""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import Final

from symbolize.binaries.debuginfod import Debuginfod, FetchOptions, Limits
from symbolize.binaries.debuginfod.client import Prefetching
from symbolize.binaries.remote import WORST_FIRST, Fetched, Kind
from symbolize.storage.binary_store import BinaryStore
from symbolize.storage.urls import is_store

FROM_ENVIRONMENT: Final = "env"
"""Stands for the servers of DEBUGINFOD_URLS."""


class SeveralClients(Prefetching):
    """Clients that are asked one after another, until one has the file; closing it closes them."""

    def __init__(self, clients: "Sequence[Debuginfod | BinaryStore]") -> None:
        super().__init__(Limits().workers)
        self._clients = clients
        self.servers = [server for client in clients for server in client.servers]

    def close(self) -> None:
        """End all downloads. What was fetched stays."""
        with ExitStack() as held:
            for client in self._clients:
                held.push(client)
            self.end(lambda: None)

    def fetch(self, build_id: str, kind: Kind, forwarded: str = "") -> Fetched:
        """The file, or why no client has it."""
        return first_found(client.fetch(build_id, kind, forwarded) for client in self._clients)

    def fetch_source(self, build_id: str, path: str, forwarded: str = "") -> Fetched:
        """The source file, or why no client has it."""
        return first_found(client.fetch_source(build_id, path, forwarded) for client in self._clients)

    def known(self, build_id: str, kind: Kind) -> Fetched | None:
        """What is known without anybody being asked: the file, a miss of all, or nothing."""
        answers = [client.known(build_id, kind) for client in self._clients]
        known = [answer for answer in answers if answer is not None]
        found = next((answer for answer in known if answer.path is not None), None)
        return found or (joined(known) if len(known) == len(answers) else None)

    def probe(self) -> dict[str, tuple[bool, str]]:
        """Whether each answers, and a text."""
        return {server: verdict for client in self._clients for server, verdict in client.probe().items()}


AnyClient = Debuginfod | BinaryStore | SeveralClients


def first_found(asked: Iterable[Fetched]) -> Fetched:
    """The first answer with a file, or why there is none; clients behind that are not asked."""
    answers: list[Fetched] = []
    for answer in asked:
        if answer.path is not None:
            return answer
        answers.append(answer)
    return joined(answers)


def joined(answers: Sequence[Fetched]) -> Fetched:
    """The answer of clients none of which has the file."""
    seen = {answer.status for answer in answers}
    status = next((each for each in WORST_FIRST if each in seen), answers[0].status)
    attempts = [attempt for answer in answers for attempt in answer.attempts]
    return Fetched(None, status, attempts, failures=[each for answer in answers for each in answer.failures])


def open_servers(urls: Sequence[str], options: FetchOptions) -> AnyClient:
    """The client for all of `urls`: object stores, which are asked first, and debuginfod servers, or `env` for those of
    DEBUGINFOD_URLS, whose variables have limits of their own. Raises UsageError."""
    servers = [url for url in urls if not is_store(url)]
    with ExitStack() as held:
        clients: list[Debuginfod | BinaryStore] = [
            held.enter_context(BinaryStore(url, options)) for url in urls if is_store(url)
        ]
        if servers == [FROM_ENVIRONMENT]:
            clients.append(held.enter_context(Debuginfod.from_environment(options=options)))
        elif servers or not clients:
            clients.append(held.enter_context(Debuginfod(servers, options)))
        held.pop_all()
    return clients[0] if len(clients) == 1 else SeveralClients(clients)
