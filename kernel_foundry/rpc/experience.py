"""`Experience` over gRPC: the same port, another process."""

from kernel_foundry.domain.bounds import check_limit
from kernel_foundry.domain.lesson import AddedLesson, Lesson, LessonHit, LessonQuery
from kernel_foundry.generator.v1 import experience_service_pb2 as pb2
from kernel_foundry.generator.v1.experience_service_pb2_grpc import ExperienceServiceStub
from kernel_foundry.rpc.connection import DEFAULT_OPTIONS, CallOptions, Connection
from kernel_foundry.wire.message import build, read_field


class RemoteExperience:
    """The library at an address; implements `kernel_foundry.ports.Experience`.

    Every method may also raise `ServiceUnavailableError`, which names the target, and
    `DeadlineExceededError`. Made and used in one event loop.

    Args:
        target: `unix:/path` or `host:port`, of the generator.
        options: Deadlines and retries.
    """

    def __init__(self, target: str, options: CallOptions = DEFAULT_OPTIONS) -> None:
        self._connection = Connection(target, options)
        self._stub = ExperienceServiceStub(self._connection.channel)

    async def lessons(self, *, after: int = 0, limit: int = 100) -> tuple[Lesson, ...]:
        """Return up to `limit` lessons with an id above `after`, in order."""
        check_limit(limit)
        lessons: list[Lesson] = []
        while True:
            request = build(pb2.ListLessonsRequest, after=after, page_size=limit - len(lessons))
            response = await self._connection.quick(self._stub.ListLessons, request)
            page = read_field(tuple[Lesson, ...], response, "lessons")
            lessons += page
            if not page or len(lessons) >= limit:
                return tuple(lessons)
            after = page[-1].id

    async def search(self, query: LessonQuery, *, limit: int = 5) -> tuple[LessonHit, ...]:
        """Return the lessons that suit `query`, best first."""
        check_limit(limit)
        request = build(pb2.SearchLessonsRequest, query=query, limit=limit)
        return await self._connection.ask(
            tuple[LessonHit, ...], "hits", self._stub.SearchLessons, request
        )

    async def add(self, lesson: Lesson) -> AddedLesson:
        """Store a lesson durably, or merge it into a near-duplicate; it counts once."""
        request = build(pb2.AddLessonRequest, lesson=lesson)
        return await self._connection.ask(AddedLesson, "added", self._stub.AddLesson, request)

    async def close(self) -> None:
        """Close the connection; the service goes on."""
        await self._connection.close()
