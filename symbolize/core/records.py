"""Classes of named fields that cost little to import."""

from typing import TYPE_CHECKING

__all__ = ["record"]

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    from dataclasses import MISSING, dataclass, fields
    from functools import partial

    def record(cls=None, /, *, frozen=False, kw_only=False):
        """A dataclass that shares its methods with all others; instances are equal to themselves only.

        `dataclass` compiles methods for each class while its module is imported, in 0.4 ms: for those that a small job
        needs a tenth of its time. Filling the fields takes 2 µs instead of 0.5, so classes with an instance for each
        row of something, with equality, and those of the library's interface are made by `dataclass`. That fields of
        a `frozen` one stay is left to type checkers.
        """
        if cls is None:
            return partial(record, kw_only=kw_only)
        cls = dataclass(cls, init=False, repr=False, eq=False, match_args=False, kw_only=kw_only)
        cls.__init__ = _fill
        in_order = sorted(fields(cls), key=lambda each: each.kw_only)
        cls._fields = {each.name: (each.default, each.default_factory) for each in in_order}
        return cls

    def _fill(self, /, *values, **named):
        """Set each field to what is given in order or by name, else to its default."""
        known = self._fields
        given = dict(zip(known, values, strict=False), **named)
        if len(given) < len(values) + len(named) or given.keys() - known:
            raise TypeError(f"{type(self).__name__}: takes {', '.join(known)}, each once")
        for name, (default, factory) in known.items():
            if name not in given:
                if default is MISSING and factory is MISSING:
                    raise TypeError(f"{type(self).__name__}: {name} is missing")
                given[name] = default if factory is MISSING else factory()
        for name, value in given.items():  # and not all at once: so objects share the names of their fields
            setattr(self, name, value)
        if hasattr(self, "__post_init__"):
            self.__post_init__()
