"""The P4Runtime messages of the published `p4runtime` package, on protobuf's compiled back end.

Its modules are of a generator that this back end refuses; the pure Python back end would take them,
50 to 150 times slower. Their descriptions are still right: here they are built anew from the file
descriptors that they carry. Modules of a newer generator are left alone.
"""

import ast
import importlib
import re
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

PACKAGES = ("p4.config.v1", "p4.v1")
# The descriptor as the generators of that time write it: a literal, quoted either way.
DESCRIPTOR = re.compile(r"serialized_pb=(b'(?:[^'\\]|\\.)*'|b\"(?:[^\"\\]|\\.)*\")")


class Rebuilt(Loader):
    """Makes a module of messages from a serialized file descriptor."""

    def __init__(self, descriptor: bytes) -> None:
        self._descriptor = descriptor

    def exec_module(self, module: ModuleType) -> None:
        """Fill the module as protobuf's present generator would."""
        # Programs that only install this, as `import emulation` does, need not wait for protobuf.
        from google.protobuf import descriptor_pb2, descriptor_pool  # noqa: PLC0415
        from google.protobuf.internal import builder  # noqa: PLC0415

        # The pool takes a file only after those that it builds on.
        for needed in descriptor_pb2.FileDescriptorProto.FromString(self._descriptor).dependency:
            importlib.import_module(f"{needed.removesuffix('.proto').replace('/', '.')}_pb2")

        file = descriptor_pool.Default().AddSerializedFile(self._descriptor)
        names = vars(module)
        names["DESCRIPTOR"] = file
        builder.BuildMessageAndEnumDescriptors(file, names)
        builder.BuildTopDescriptorsAndMessages(file, module.__name__, names)


class Finder(MetaPathFinder):
    """Finds the messages' modules before Python's own finder does."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module of ours, None for any other module."""
        # Python asks with the package's `__path__`, so PathFinder looks where Python would.
        if name.rpartition(".")[0] not in PACKAGES or not name.endswith("_pb2"):
            return None

        spec = PathFinder.find_spec(name, path)
        descriptor = (
            DESCRIPTOR.search(Path(spec.origin).read_text(encoding="utf-8"))
            if spec and spec.origin
            else None
        )

        return (
            ModuleSpec(name, Rebuilt(ast.literal_eval(descriptor[1])), origin=spec.origin)
            if spec and descriptor
            else None
        )


def install() -> None:
    """Use the compiled back end wherever this process imports P4Runtime messages from now on."""
    if not any(isinstance(finder, Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, Finder())
