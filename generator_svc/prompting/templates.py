"""Templates of prompts: those of this package, and a user's own in place of single ones.

`parts` makes the values of their variables.
"""

import traceback
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import jinja2

from generator_svc.markdown import fenced
from kernel_foundry.errors import LlmConfigurationError
from kernel_foundry.languages import languages

_TEMPLATE_SUFFIX: Final = ".j2"
_FOREIGN_ERRORS: Final = (
    jinja2.TemplateError,
    TypeError,
    ValueError,
    ArithmeticError,
    LookupError,
    AttributeError,
)
"""Errors that a user's template may raise."""


class PromptTemplates:
    """Renders templates by name.

    Args:
        folder: Holds a user's own files, named and placed as those of `generator_svc/prompts` and
            of the languages' folders (`kernel_foundry/languages`); each is taken in place of the
            package's. A file whose name starts with "_" may also be a new one, to be included.
            `meta/` and a language's blocks, guidance, hints and phrases cannot be replaced. None:
            the package's alone.

    Raises:
        LlmConfigurationError: there is no such folder, or one of its files replaces nothing or is
            not valid Jinja2.
    """

    def __init__(self, folder: Path | None = None) -> None:
        own = _own_files(tuple((language.name, language.texts) for language in languages()))
        self._loader: jinja2.BaseLoader = own
        self._environment = _environment(own)
        if folder is not None:
            if not folder.is_dir():
                raise LlmConfigurationError(
                    f"{folder}, which should hold your own prompt templates, is not a folder",
                    folder=str(folder),
                )
            self._loader = jinja2.ChoiceLoader([jinja2.FileSystemLoader(folder), own])
            self._environment = self._environment.overlay(loader=self._loader)
        self._packaged: Final = frozenset(own.list_templates())
        self.names: Final = tuple(sorted(filter(_is_replaceable, self._packaged)))
        if folder is not None:
            self._check(folder)

    def render(self, name: str, values: Mapping[str, object]) -> str:
        """Return the text of the template `name`.

        Raises:
            LlmConfigurationError: it does not render; the message names file and line.
        """
        try:
            return self._environment.get_template(name).render(values).strip() + "\n"
        except _FOREIGN_ERRORS as error:
            raise _broken(name, error) from error

    def text(self, name: str) -> str:
        """Return a file of the templates' folders as it is, such as an example."""
        return self._loader.get_source(self._environment, name)[0].strip()

    def _check(self, folder: Path) -> None:
        """Refuse files that would never be used, and templates that cannot be read."""
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            is_new = name not in self.names
            is_ignored = is_new and name in self._packaged
            is_note = is_new and not is_ignored and path.suffix != _TEMPLATE_SUFFIX
            if not path.is_file() or is_note:
                continue
            if is_ignored or (is_new and not path.name.startswith("_")):
                raise LlmConfigurationError(
                    f"{path} replaces no template; {', '.join(self.names)} can be replaced. A new "
                    "file that others include must have a name that starts with _",
                    template=name,
                )
            if path.suffix == _TEMPLATE_SUFFIX:
                try:
                    self._environment.get_template(name)
                except jinja2.TemplateError as error:
                    raise _broken(name, error) from error


@cache
def _own_files(of_languages: tuple[tuple[str, Path], ...]) -> jinja2.BaseLoader:
    """Return the loader of the package's templates and of its languages' folders."""
    folders = {name: jinja2.FileSystemLoader(folder) for name, folder in of_languages}
    return jinja2.ChoiceLoader(
        [jinja2.PackageLoader("generator_svc", "prompts"), jinja2.PrefixLoader(folders)]
    )


@cache
def _environment(loader: jinja2.BaseLoader) -> jinja2.Environment:
    """An environment that keeps what it has compiled for the whole process."""
    environment = jinja2.Environment(
        loader=loader,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,  # of an included file, or its last line joins the next
        autoescape=False,
    )
    environment.filters["fenced"] = fenced
    return environment


def _is_replaceable(name: str) -> bool:
    # Other files are read elsewhere: `meta/` by the editor, a language's guidance by its
    # definition.
    folder, _, rest = name.partition("/")
    if folder in {language.name for language in languages()}:
        return rest == "example.md" or rest.startswith("experts/")
    return folder != "meta"


def _broken(name: str, error: Exception) -> LlmConfigurationError:
    place = name
    if isinstance(error, jinja2.TemplateSyntaxError):
        place = f"{error.filename or error.name or name}, line {error.lineno}"
    else:
        frames = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename.endswith(_TEMPLATE_SUFFIX)
        ]
        if frames:
            place = f"{frames[-1].filename}, line {frames[-1].lineno}"
    return LlmConfigurationError(
        f"the prompt template {name} does not render: {error} ({place})",
        template=name,
        place=place,
    )
