"""Alembic's entry point: migrates over the connection that `upgrade` hands in."""

from alembic import context

from generator_svc.store.schema import SCHEMA

context.configure(
    connection=context.config.attributes["connection"],
    render_as_batch=True,
    version_table=SCHEMA.version_table,
)
with context.begin_transaction():
    context.run_migrations()
