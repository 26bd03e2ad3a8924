"""The vector index: exact cosines by FAISS, kept in one file that is whole or absent.

The database is the truth: the file says which of its states it shows, and whoever reads it back
compares. Knows nothing of lessons, only of ids and vectors of length 1. FAISS is loaded at first
use.
"""

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from generator_svc.experience.embedding import Vectors
from kernel_foundry.domain.plain import PlainError, from_json, to_json

_MAGIC: Final = b"KFLX1\n"

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexState:
    """Which state of which database an index shows."""

    store: str
    """Name that the database gave itself."""
    version: int
    """Of its lessons."""
    embedder: str
    passages: tuple[str, ...] = ()
    """Digests of what the vectors were made of, in the order of the index's ids."""


class VectorIndex:
    """Vectors by id, searched exhaustively: exact, and fast for some ten thousands.

    Args:
        dimension: Length of a vector.
    """

    def __init__(self, dimension: int) -> None:
        import faiss

        self._faiss: Any = faiss
        self._index: Any = faiss.IndexIDMap2(faiss.IndexFlatIP(dimension))
        self.dimension: Final = dimension

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def ids(self) -> Ids:
        """Return all ids, in no order."""
        ids: Ids = self._faiss.vector_to_array(self._index.id_map)
        return ids

    def put(self, ids: Sequence[int], vectors: Vectors) -> None:
        """Set the vectors of `ids`, whether they have one already or not."""
        if len(ids):
            self.remove(ids)
            self._index.add_with_ids(vectors, np.asarray(ids, dtype=np.int64))

    def remove(self, ids: Sequence[int]) -> None:
        """Forget the vectors of `ids`; those that are not there are fine."""
        if len(ids) and len(self):
            self._index.remove_ids(np.asarray(ids, dtype=np.int64))

    def vectors(self, ids: Ids) -> Vectors:
        """Return the vectors of `ids`, which must be there."""
        found: Vectors = self._index.reconstruct_batch(ids)
        return found

    def selector(self, ids: Ids) -> Any:
        """Return what restricts a search to `ids`; good for many searches."""
        return self._faiss.IDSelectorBatch(ids)

    def search(self, vector: Vectors, count: int, among: Any = None) -> tuple[Ids, Vectors]:
        """Return (ids, cosines) of up to `count` nearest, best first.

        Args:
            vector: (dimension,) of length 1.
            count: How many.
            among: A `selector`; None: all.
        """
        wanted = min(count, len(self))
        if wanted == 0:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
        options = self._faiss.SearchParameters(sel=among) if among is not None else None
        # For one query threads cost more than they bring. The setting is one of the calling
        # thread, which may not be the one that made the index.
        self._faiss.omp_set_num_threads(1)
        cosines, ids = self._index.search(vector[np.newaxis, :], wanted, params=options)
        is_there = ids[0] >= 0
        return ids[0][is_there], cosines[0][is_there]

    def write(self, path: Path, state: IndexState) -> None:
        """Write the index beside `path`, then put it in its place: readers see old or new.

        Raises:
            OSError: the folder cannot be written.
        """
        content = self._faiss.serialize_index(self._index).tobytes()
        header = {"sha256": hashlib.sha256(content).hexdigest(), "state": to_json(state)}
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(_MAGIC + json.dumps(header).encode() + b"\n")
                file.write(content)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    @classmethod
    def read(cls, path: Path, dimension: int) -> tuple[Self, IndexState] | None:
        """Return the index of a file and what it shows; None when it is absent or damaged."""
        try:
            magic, header, content = path.read_bytes().split(b"\n", 2)
            described = json.loads(header)
            state = from_json(IndexState, described["state"])
        except (OSError, ValueError, KeyError, TypeError, PlainError):
            return None
        # FAISS trusts what it reads, so the bytes are checked before.
        if magic + b"\n" != _MAGIC or hashlib.sha256(content).hexdigest() != described.get(
            "sha256"
        ):
            return None
        index = cls(dimension)
        index._index = index._faiss.deserialize_index(np.frombuffer(content, dtype=np.uint8))
        return (index, state) if index._index.d == dimension else None
