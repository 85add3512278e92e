"""What the index and compressed files leave in the cache folder: how much it is, and removing what is not used."""

import os
import time
from typing import NamedTuple

from symbolize.binaries import store
from symbolize.binaries.unpack import cache_folder, folder_in
from symbolize.core.files import CacheFolder, file_size


class Kept(NamedTuple):
    """Files that the index knows and bytes of its database, and decompressed files and their bytes."""

    known: int
    index_size: int
    unpacked: int
    unpacked_size: int


def kept(folder: str) -> Kept:
    """What is in a cache folder; what cannot be read counts as nothing."""
    known = 0
    if os.path.exists(store.database_path(folder)):
        try:
            connection = store.connect(folder)
            try:
                (known,) = connection.execute("SELECT count(*) FROM file").fetchone()
            finally:
                connection.close()
        except store.ERRORS:
            pass
    sizes = [file.size for file in CacheFolder(folder_in(folder)).files()]
    return Kept(known, file_size(store.database_path(folder)), len(sizes), sum(sizes))


def collect(folder: str) -> tuple[int, str]:
    """Forget folders that nobody asked for in a long time and decompressed files that nobody used.

    Returns how many decompressed files were removed, and what went wrong with the index, if anything did.
    """
    problem = ""
    if os.path.exists(store.database_path(folder)):
        try:
            connection = store.connect(folder)
            try:
                store.forget(connection, int(time.time()) - store.FORGOTTEN)
                connection.commit()
                connection.execute("VACUUM")
            finally:
                connection.close()
        except store.ERRORS as error:
            problem = f"{store.database_path(folder)}: {store.one_line(error)}"
    return cache_folder(folder_in(folder)).evict(), problem


def verify(folder: str) -> str:
    """What is wrong with the index in a cache folder, which is removed if it is damaged; empty for a sound one."""
    path = store.database_path(folder)
    if not os.path.lexists(path):
        return ""
    try:
        store.connect(folder).close()
    except store.ERRORS as error:
        problem = f"{path}: {store.one_line(error)}"
        if store.is_damage(error):
            try:
                store.remove_database(folder)
                problem += "; removed"
            except OSError:
                pass
        return problem
    return ""
