"""The pool of what is open."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from symbolize.resolve import opened as pools
from symbolize.resolve.opened import BinaryPool, Pooled


class Fake(Pooled):
    """Something open, which changes when a test says so."""

    def __init__(self, name: str = "", memory: int = 0) -> None:
        self.name, self.memory = name, memory
        self.has_changed = False
        self.closed = self.looks = 0

    @property
    def is_outdated(self) -> bool:
        """Whether the test said so."""
        self.looks += 1
        return self.has_changed

    def close(self) -> None:
        """Count how often that was asked for."""
        self.closed += 1


Pool = BinaryPool[str, Fake]


def asked(pool: Pool, name: str, memory: int = 0) -> Fake:
    """What is open of a name, used for a moment."""
    value = pool.hold(name, lambda: Fake(name, memory))
    pool.release(value)
    return value


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets seconds pass."""
    now = [100.0]
    monkeypatch.setattr(pools.time, "monotonic", lambda: now[0])

    def wait(seconds: float) -> None:
        now[0] += seconds

    return wait


def test_what_is_open_is_opened_once() -> None:
    """Also while it is used, and by its key alone."""
    pool = Pool(2)
    first = pool.hold("a", Fake)
    assert pool.hold("a", Fake) is first
    assert pool.get("a") is pool.hold_open("a") is first
    assert pool.get("b") is pool.hold_open("b") is None
    assert len(pool) == 1
    assert [*pool] == [first]


def test_the_least_recently_used_is_closed_first() -> None:
    """What is asked for again counts as new."""
    pool = Pool(2)
    a, b = asked(pool, "a"), asked(pool, "b")
    assert asked(pool, "a") is a
    c = asked(pool, "c")
    assert (a.closed, b.closed, c.closed) == (0, 1, 0)
    assert [*pool] == [a, c]


def test_what_is_used_stays_open() -> None:
    """And does not count towards the limit; of the others that goes first whose use ended first."""
    pool = Pool(1)
    held = [pool.hold(name, Fake) for name in "abc"]
    last = asked(pool, "d")
    assert not any(each.closed for each in (*held, last))
    pool.release(*held[:2])
    assert [each.closed for each in (*held, last)] == [1, 0, 0, 1]
    assert [*pool] == held[1:]


@pytest.mark.parametrize(("limit", "most"), [(2, 999), (9, 8)])
def test_what_is_used_counts(limit: int, most: int) -> None:
    """Where a pool is told so, the number and the memory of all that is open are bounded: what is too much is closed
    with its last use, and one stays."""
    pool = Pool(limit, max_bytes=most, counts_used=True)
    held = [pool.hold(name, lambda: Fake(memory=4)) for name in "abc"]
    assert ([*pool], pool.memory, [each.closed for each in held]) == (held[1:], 8, [0, 0, 0])
    pool.release(held[0])
    assert [each.closed for each in held] == [1, 0, 0]
    large = pool.hold("d", lambda: Fake(memory=100))
    pool.release(*held[1:], large)
    assert [each.closed for each in (*held, large)] == ([1, 1, 0, 0] if most > 8 else [1, 1, 1, 0])


def test_a_successor_is_not_taken_for_what_it_replaced() -> None:
    """What another thread opened while one looked whether files changed stays open."""
    pool = Pool(2)
    old = asked(pool, "a")
    old.has_changed = True

    def opened_meanwhile(self: Fake) -> bool:
        if not made:
            made.append(pool.add("a", Fake()))
        return True

    made: list[Fake] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Fake, "is_outdated", property(opened_meanwhile))
        assert pool.hold_open("a") is None
    assert pool.get("a") is made[0]
    assert (old.closed, made[0].closed) == (1, 0)


@pytest.mark.parametrize(("sizes", "left"), [((4, 4, 4), "bc"), ((4, 4, 9), "c"), ((4, 99), "b"), ((8, 0, 1), "bc")])
def test_bytes(sizes: tuple[int, ...], left: str) -> None:
    """Of what nobody uses as much stays open as there may be, and the last one whatever it takes."""
    pool = Pool(9, max_bytes=8)
    values = [asked(pool, name, size) for name, size in zip("abc", sizes, strict=False)]
    assert "".join(each.name for each in pool) == left
    assert pool.memory == sum(each.memory for each in pool)
    assert [each.closed for each in values] == [each.name not in left for each in values]


def test_what_changed_is_opened_anew() -> None:
    """Who uses it goes on with what it was; it is closed once with the last of them."""
    pool = Pool(2)
    old = pool.hold("a", Fake)
    assert pool.hold_open("a") is old
    old.has_changed = True
    assert pool.hold_open("a") is None
    new = pool.hold("a", Fake)
    assert new is not old
    assert not old.closed
    pool.release(old)
    assert not old.closed
    pool.release(old)
    pool.release(new)
    assert (old.closed, new.closed) == (1, 0)
    new.has_changed = True
    assert asked(pool, "a") is not new
    assert new.closed == 1


def test_when_it_is_looked_at(clock: Callable[[float], None]) -> None:
    """Once in `age` seconds, from when it was opened on; each time if there is none."""
    pool, eager = Pool(2, age=1.0), Pool(2)
    value = asked(pool, "a")
    clock(0.5)
    value.has_changed = True
    assert asked(pool, "a") is value
    assert not value.looks
    clock(0.5)
    assert asked(pool, "a") is not value
    always = asked(eager, "a")
    assert asked(eager, "a") is asked(eager, "a") is always
    assert always.looks == 2


def test_what_is_added_and_dropped() -> None:
    """What was open before is closed as soon as nobody uses it."""
    pool = Pool(2)
    first = asked(pool, "a")
    second = pool.add("a", Fake(memory=3))
    assert (first.closed, second.closed, pool.memory) == (1, 0, 3)
    pool.drop("a")
    assert (len(pool), pool.memory, second.closed) == (0, 0, 0)
    pool.release(second)
    assert second.closed == 1
    pool.drop("a")


def test_an_opener_that_fails() -> None:
    """Leaves nothing open, and is asked again."""
    pool = Pool(2)

    def fail() -> Fake:
        raise OSError("no descriptors")

    with pytest.raises(OSError, match="no descriptors"):
        pool.hold("a", fail)
    assert not len(pool)
    assert asked(pool, "a").name == "a"


def test_close() -> None:
    """Closes all, also what is used, and what was replaced and is used; nothing twice."""
    pool = Pool(2)
    values = [asked(pool, "a"), pool.hold("b", Fake)]
    values.append(pool.add("b", Fake()))
    pool.close()
    pool.release(*values[1:])
    assert [each.closed for each in values] == [1, 1, 1]
    assert (len(pool), pool.memory) == (0, 0)


def test_what_was_closed_does_not_come_back() -> None:
    """The last use of what was open before `close` says nothing of what has its key now."""
    pool = Pool(0)
    old = pool.hold("a", Fake)
    pool.close()
    new = pool.hold("a", Fake)
    pool.release(old)
    assert (pool.get("a"), old.closed, new.closed) == (new, 1, 0)


def test_threads() -> None:
    """Nothing is closed while it is used, and everything in the end, once."""
    pool = Pool(1)
    made: list[Fake] = []
    wrong: list[str] = []
    barrier = threading.Barrier(4)

    def opened() -> Fake:
        made.append(Fake())
        return made[-1]

    def work(number: int) -> None:
        barrier.wait()
        for turn in range(300):
            value = pool.hold("abc"[(number + turn) % 3], opened)
            if turn % 7 == 0:
                value.has_changed = True
            if value.closed:
                wrong.append("closed while it is used")
            pool.release(value)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
    assert not wrong
    assert len(pool) == 1
    assert not any(value.users for value in made)
    pool.close()
    assert {value.closed for value in made} == {1}
