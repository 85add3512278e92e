"""What is changed in a profile when its names are known: frames that are left out, paths, stand-ins for names."""

from collections.abc import Sequence
from dataclasses import dataclass

from symbolize.core.errors import UsageError, check_flags, check_type
from symbolize.profile import Profile


@dataclass(frozen=True)
class Edits:
    """Changes to a symbolized profile. Empty: none.

    `path_prefixes` are pairs of folders: source files below the first get the path below the second, the longest first
    that matches. `trim_paths` are folders that are removed from the beginnings of paths, as pprof's trim_path.

    `prune` drops the frames that the profile itself asks to drop (drop_frames and keep_frames), with all below them, as
    pprof does; `drop` and `keep` are regular expressions for whole names of functions that do so too. `prune_from`
    drops all below the innermost frame that matches.

    `synthesize` gives code without names a function `module+0xoffset`. Raises TypeError for an argument of another
    type, UsageError for `keep` alone, and for an invalid expression.
    """

    path_prefixes: Sequence[tuple[str, str]] = ()
    trim_paths: Sequence[str] = ()
    prune: bool = False
    drop: str = ""
    keep: str = ""
    prune_from: str = ""
    synthesize: bool = False

    def __post_init__(self) -> None:
        check_type("path_prefixes", self.path_prefixes, "a list of pairs of folders", list, tuple)
        check_type("trim_paths", self.trim_paths, "a list of folders", list, tuple)
        for pair in self.path_prefixes:
            check_type("path_prefixes", pair, "pairs of folders in the list", list, tuple)
            if [type(folder) for folder in pair] != [str, str]:
                raise TypeError(f"path_prefixes: expected two texts in a pair, not {pair!r}")
        for folder in self.trim_paths:
            check_type("trim_paths", folder, "folders in the list", str)
        # So that edits can be compared, and what is made by them told apart.
        object.__setattr__(self, "path_prefixes", tuple(map(tuple, self.path_prefixes)))
        object.__setattr__(self, "trim_paths", tuple(self.trim_paths))
        check_flags(prune=self.prune, synthesize=self.synthesize)
        for name in ("drop", "keep", "prune_from"):
            check_type(name, getattr(self, name), "text", str)
        if self.keep and not (self.prune or self.drop):
            raise UsageError("keep has an effect only with drop or prune")
        if self.drop or self.keep or self.prune_from:
            from symbolize.enrich.prune import check_expressions

            check_expressions(self.drop, self.keep, self.prune_from)

    def __bool__(self) -> bool:
        return bool(
            self.path_prefixes or self.trim_paths or self.prune or self.drop or self.prune_from or self.synthesize
        )

    def apply(self, profile: Profile) -> Profile:
        """The changed profile; the given one is not changed. Locations stay, but for their lines."""
        profile = Profile.of(profile, "profile")
        if self.path_prefixes or self.trim_paths:
            from symbolize.enrich.paths import rewrite_paths

            profile = rewrite_paths(profile, self.path_prefixes, self.trim_paths)
        if self.prune or self.drop:
            from symbolize.enrich.prune import prune

            profile = prune(profile, self.drop, self.keep, own=self.prune)
        if self.prune_from:
            from symbolize.enrich.prune import prune_from

            profile = prune_from(profile, self.prune_from)
        if self.synthesize:
            from symbolize.enrich.synthesize import synthesize

            profile = synthesize(profile)
        return profile
