"""Keys of jobs by the job's name, as in `jobs.reduce.collective.message_bytes`.

In files jobs are a list, and libraries count its places; people name them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from fattree.errors import ExperimentError
from fattree.texts.toml_places import KeyPath

JOBS = "jobs"
# The key that decides which others a collective has, and where it is in a job.
COLLECTIVE = "collective"


def job_names(values: Mapping[str, Any]) -> list[Any]:
    """Return the names of the jobs of a file's values, None for a job without a name."""
    jobs = values.get(JOBS)
    return [
        job.get("name") if isinstance(job, Mapping) else None
        for job in (jobs if isinstance(jobs, list | tuple) else ())
    ]


def is_of_job(path: Sequence[str]) -> bool:
    """Return whether a dotted key is a job's."""
    return path[0] == JOBS and len(path) > 1


def split_key(path: Sequence[str], names: Sequence[Any]) -> tuple[int, list[str]]:
    """Return the place of the job that a dotted key names, and the key's rest below it.

    A name may have dots itself: the longest that fits is meant. Raises ExperimentError.
    """
    for end in range(len(path), 1, -1):
        name = ".".join(path[1:end])
        if name in names and end < len(path):
            return names.index(name), list(path[end:])

    listed = ", ".join(str(name) for name in names if name)
    raise ExperimentError(
        f"{'.'.join(path)}: names no key of a job, as in jobs.NAME.collective.message_bytes; "
        + (f"the jobs are {listed}" if listed else "there are no jobs")
    )


def by_name(path: KeyPath, names: Sequence[Any]) -> KeyPath:
    """Return a path with the job's name in the place of its number."""
    if path[:1] == (JOBS,) and len(path) > 1 and isinstance(path[1], int):
        name = names[path[1]] if path[1] < len(names) else None
        return path if name is None else (JOBS, *str(name).split("."), *path[2:])

    return path


def is_of_collective(path: Sequence[str]) -> bool:
    """Return whether a dotted key is a collective's, the experiment's or a job's."""
    return path[0] == COLLECTIVE or (is_of_job(path) and COLLECTIVE in path[2:-1])
