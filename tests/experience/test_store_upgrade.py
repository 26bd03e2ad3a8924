"""A generator's store of schema 0001 is upgraded: gains in today's fitness, the finding renamed."""

import json
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from generator_svc.store.schema import SCHEMA
from kernel_foundry.domain.fitness import correct_fitness
from kernel_foundry.sql.engine import open_engine


def test_gains_and_findings_of_the_first_version(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'generator.db'}"
    engine = sa.create_engine(url)
    config = Config()
    config.set_main_option("script_location", SCHEMA.migrations)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        for selection, (speedup, gain) in enumerate(((1.5, 0.1), (None, 0.6), (2.0, None))):
            connection.execute(
                sa.text(
                    "INSERT INTO proposals (run, selection, language, operator, expert, model, "
                    "usd, lessons, parent, parent_fitness, parent_speedup, parent_findings, gain, "
                    "learnt) VALUES ('r', :selection, 'cuda', 'mutate', 'memory', 'm', 0, '[]', "
                    "'p', 0.7, :speedup, :findings, :gain, 0)"
                ),
                {
                    "selection": selection,
                    "speedup": speedup,
                    "gain": gain,
                    "findings": json.dumps(["spill", "roofline"]),
                },
            )
    engine.dispose()

    upgraded, _ = open_engine(url, SCHEMA)
    with upgraded.connect() as connection:
        rows = connection.execute(sa.text("SELECT * FROM proposals ORDER BY selection")).all()
    upgraded.dispose()
    assert [row.gain for row in rows] == [pytest.approx(0.4), pytest.approx(2.4), None]
    expected = [correct_fitness(1.5), 0.7, correct_fitness(2.0)]
    assert [row.parent_fitness for row in rows] == pytest.approx(expected)
    assert {row.parent_findings for row in rows} == {'["spill", "traffic_bound"]'}
