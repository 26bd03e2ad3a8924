"""Writes launch plans: TUNE, CONST and WHERE, then `launch`."""

from collections.abc import Iterable, Mapping, Sequence

from generator_svc.recipes.genome import Genome


def plan_text(
    genome: Genome,
    *,
    tune: Mapping[str, Sequence[int]],
    names: Iterable[str],
    launch: Iterable[str],
    constants: Mapping[str, str] | None = None,
    where: Sequence[str] = (),
    words: str = "",
) -> str:
    """Return a plan.

    Args:
        genome: Stands in its first line, for who changes it later.
        tune: Values of each parameter, the default first.
        names: What `launch` takes from the name table; one that comes twice is listed once.
        launch: Statements of `launch`.
        constants: Expression of each compile-time constant.
        where: Conditions on the parameters.
        words: Docstring of `launch`.
    """
    lines = [genome.comment()]
    if tune:
        lines.append(f"TUNE = {dictionary(tune)}")
    if constants:
        lines.append(f"CONST = {dictionary(constants)}")
    if where:
        lines += ["WHERE = [", *(f'    "{condition}",' for condition in where), "]"]
    lines += ["", "", f"def launch({', '.join(dict.fromkeys(names))}):"]
    if words:
        lines.append(f'    """{words}"""')
    lines += [f"    {line}" for line in launch]
    return "\n".join(lines) + "\n"


def default_first(default: int, values: Sequence[int]) -> list[int]:
    """Return the values of a TUNE parameter with its default in front."""
    return [default, *(v for v in values if v != default)]


def dictionary(values: Mapping[str, object]) -> str:
    """Return a plan's dictionary, one entry a line when they do not fit one."""
    entries = [f'"{name}": {_text(value)}' for name, value in values.items()]
    line = "{" + ", ".join(entries) + "}"
    if len(line) <= 88:
        return line
    return "{\n" + "".join(f"    {entry},\n" for entry in entries) + "}"


def _text(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)
