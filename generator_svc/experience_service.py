"""The experience library as a gRPC service: messages in, the port's calls, messages out."""

# ruff: noqa: D102, N802 - the proto names and documents the methods

from typing import Any, Final

from grpc.aio import ServicerContext

from kernel_foundry.domain.lesson import Lesson, LessonQuery
from kernel_foundry.generator.v1 import experience_service_pb2 as pb2
from kernel_foundry.generator.v1 import experience_service_pb2_grpc as pb2_grpc
from kernel_foundry.ports import Experience
from kernel_foundry.rpc.page_size import page_size
from kernel_foundry.rpc.server import Service
from kernel_foundry.wire.message import build, read_field

_Context = ServicerContext[Any, Any]

_MAX_PAGE: Final = 1_000
"""Lessons of a page: each has a few kilobytes."""
_HITS: Final = 20
"""Of a search that does not say how many."""


class ExperienceServicer(pb2_grpc.ExperienceServiceServicer):
    """Adapts any `Experience` to gRPC; errors are mapped by the server's interceptor."""

    def __init__(self, experience: Experience) -> None:
        self._experience = experience

    async def ListLessons(
        self, request: pb2.ListLessonsRequest, context: _Context
    ) -> pb2.ListLessonsResponse:
        limit = page_size(request.page_size, "page_size", most=_MAX_PAGE)
        lessons = await self._experience.lessons(after=request.after, limit=limit)
        return build(pb2.ListLessonsResponse, lessons=lessons)

    async def SearchLessons(
        self, request: pb2.SearchLessonsRequest, context: _Context
    ) -> pb2.SearchLessonsResponse:
        query = read_field(LessonQuery, request, "query")
        limit = page_size(request.limit, "limit", most=_MAX_PAGE, default=_HITS)
        hits = await self._experience.search(query, limit=limit)
        return build(pb2.SearchLessonsResponse, hits=hits)

    async def AddLesson(
        self, request: pb2.AddLessonRequest, context: _Context
    ) -> pb2.AddLessonResponse:
        added = await self._experience.add(read_field(Lesson, request, "lesson"))
        return build(pb2.AddLessonResponse, added=added)


def experience_service(experience: Experience) -> Service:
    """Return `experience` as a service; the server closes it at its end."""
    return Service(
        name=pb2.DESCRIPTOR.services_by_name["ExperienceService"].full_name,
        register=lambda server: pb2_grpc.add_ExperienceServiceServicer_to_server(
            ExperienceServicer(experience), server
        ),
        prepare=lambda: experience.lessons(limit=1),
        close=experience.close,
    )
