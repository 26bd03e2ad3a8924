"""Statements that SQLAlchemy writes once and the driver runs each time.

For the few that every selection and addition of an archive waits for: SQLAlchemy's own way to the
driver takes longer than they do.
"""

from collections import namedtuple
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import sqlalchemy as sa


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    """A statement in one database's SQL."""

    sql: str
    fixed: Mapping[str, Any]
    """Values that are part of the statement."""
    order: tuple[str, ...] | None
    """Of the values; None where the driver takes them by name."""


class PreparedStatement:
    """A statement that runs in the transaction of whoever calls.

    Args:
        statement: A value that changes is a `bindparam`; none of these is expanding.
        columns: What an insertion writes.
    """

    def __init__(
        self,
        statement: sa.Select[Any] | sa.Insert | sa.Update | sa.TextClause,
        *,
        columns: Sequence[str] = (),
    ) -> None:
        self._statement = statement
        self._columns = list(columns) or None
        self._texts: dict[str, _Text] = {}
        selected = statement.selected_columns if isinstance(statement, sa.Select) else ()
        names = [column.name for column in selected]
        self._as_row = cast("Any", namedtuple)("Row", names)._make

    def run(self, connection: sa.Connection, values: Mapping[str, Any]) -> list[Any]:
        """Return the rows, each with its columns as attributes; none of a statement without.

        Raises:
            sqlalchemy.exc.DBAPIError: the same subclass as of SQLAlchemy itself.
        """
        dialect = connection.dialect
        text = self._texts.get(dialect.name)
        if text is None:
            text = self._texts[dialect.name] = self._written(dialect)
        given: Any = {**text.fixed, **values}
        if text.order is not None:
            given = [given[name] for name in text.order]
        cursor = connection.connection.cursor()
        try:
            cursor.execute(text.sql, given)
            return [self._as_row(row) for row in cursor.fetchall()] if cursor.description else []
        except dialect.loaded_dbapi.Error as error:
            base = dialect.loaded_dbapi.Error
            raise sa.exc.DBAPIError.instance(
                text.sql, None, error, base, hide_parameters=True, dialect=dialect
            ) from error
        finally:
            cursor.close()

    def _written(self, dialect: sa.Dialect) -> _Text:
        compiled: Any = self._statement.compile(dialect=dialect, column_keys=self._columns)
        fixed = {name: value for name, value in compiled.params.items() if value is not None}
        order = compiled.positiontup
        return _Text(sql=str(compiled), fixed=fixed, order=None if order is None else tuple(order))
