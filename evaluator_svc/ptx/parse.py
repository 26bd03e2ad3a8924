"""Reads the text form of a PTX module.

The text comes from a compiler that was fed hostile source, inline assembly included: sizes are
bounded, comments and scopes are read as the assembler reads them, and what does not fit the grammar
is an error rather than skipped. Values are not resolved here.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from evaluator_svc.ptx.module import (
    LABEL,
    LASTING,
    Function,
    Instruction,
    Location,
    Module,
    Variable,
    names_in,
    type_bytes,
)

_MAX_BYTES: Final = 16 << 20
_MAX_STATEMENTS: Final = 400_000
_MAX_DEPTH: Final = 64
_MAX_SCOPED_REGISTERS: Final = 4096

_COMMENT: Final = re.compile(r'("[^"\n]*")|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_STATEMENT: Final = re.compile(
    r"""\s*(?:
      (?P<brace>[{}])
    | (?P<empty>;)
    | (?P<line>\.(?:
          loc(?:[ \t]+\d+){3}(?:[ \t]*,[ \t]*function_name[ \t]+[\w$%.]+(?:[ \t]*\+[ \t]*\d+)?
            [ \t]*,[ \t]*inlined_at(?:[ \t]+\d+){3})?
        | file[ \t]+\d+[ \t]+"[^"\n]*"(?:[ \t]*,[ \t]*\d+){0,2}
        | version[ \t]+\d+\.\d+
        | target[ \t]+\w+(?:[ \t]*,[ \t]*\w+)*
        | address_size[ \t]+\d+
      )[ \t\r]*(?=\n|\Z))
    | (?P<unread>\.(?:loc|file|version|target|address_size)\b)
    | (?P<section>\.section\b[^{]*\{[^}]*\})
    | (?P<function>(?:\.\w+\s+)*\.(?:entry|func)\b[^;{]*)(?P<end>[;{])
    | (?P<directive>\.\w[^;]*);
    | (?P<label>[A-Za-z_$%][\w$]*)\s*:(?!:)
    | (?:@\s*(?P<predicate>!?\s*[\w$%]+)\s+)?(?P<opcode>[a-z][\w.:]*+)(?P<operands>[^;]*+);
    )""",
    re.VERBOSE,
)
_LOC: Final = re.compile(
    r"\.loc\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})"
    r"(?:.*\binlined_at\s+(\d{1,9})\s+(\d{1,9})\s+(\d{1,9}))?"
)
_FILE: Final = re.compile(r'\.file\s+(\d{1,9})\s+"([^"\n]*)"')
_HEADER: Final = re.compile(
    r"(?P<linkage>(?:\.\w+\s+)*)\.(?P<kind>entry|func)(?:\s*\.attribute\s*\([^()]*\))?"
    r"\s*+(?:\((?P<returned>[^()]*+)\))?\s*+(?P<name>[A-Za-z_$%][\w$]*)\s*"
    r"(?:\((?P<parameters>[^()]*)\))?"
)
_PARAMETER: Final = re.compile(r"(?<![\w$])([A-Za-z_$%][\w$]*+)\s*+(?:\[\d*+\])?\s*+$")
_VARIABLE: Final = re.compile(
    r"(?P<linkage>(?:\.(?:visible|extern|weak|common)\s+)*)\.(?P<space>global|shared|const|local|param)"
    r"(?P<attributes>(?:\s*\.(?:align\s+\d+|attribute\s*\([^()]*\)|v[248]|ptr|shared::\w+))*)"
    r"\s*\.(?P<type>[a-z]\w*)\s+(?P<rest>.+)",
    re.DOTALL,
)
_DECLARATOR: Final = re.compile(
    r"\s*([A-Za-z_$%][\w$]*)\s*((?:\[\s*+\w*+\s*+\]\s*+)*)(?:<(\w+)>)?\s*"
)
_LENGTH: Final = re.compile(r"\[\s*(\w*)\s*\]")
_INTEGER: Final = re.compile(
    r"0[xX][\da-fA-F]{1,16}U?|0[bB][01]{1,64}U?|0[0-7]{0,22}U?|[1-9]\d{0,18}U?"
)
_REGISTER: Final = re.compile(r"\.reg\s*(?:\.v[24]\s*)?\.\w+\s+(.+)", re.DOTALL)
_STRING: Final = re.compile(r'"[^"]*"')
_WORD: Final = re.compile(r"(?<![\w$%.])[A-Za-z_$%][\w$%]*")


class PtxError(Exception):
    """The text is no PTX module that can be judged."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def parse(code: bytes) -> Module:
    """Return the module that `code` holds.

    Raises:
        PtxError: not a well-formed module.
    """
    if len(code) > _MAX_BYTES:
        raise PtxError(f"{len(code)} bytes are more than the {_MAX_BYTES} that are looked at")
    try:
        text = code.rstrip(b"\0").decode("utf-8")
    except UnicodeDecodeError as error:
        raise PtxError("the text is not UTF-8") from error
    builder = _Builder()
    for match in _statements(_COMMENT.sub(lambda m: m[1] or " ", text)):
        builder.add(match)
    return builder.module()


def _statements(text: str) -> Iterator[re.Match[str]]:
    end = len(text.rstrip())
    position = count = 0
    while position < end:
        match = _STATEMENT.match(text, position)
        if match is None:
            line = text.count("\n", 0, position) + 1
            raise PtxError(f"the statement at line {line} cannot be read")
        yield match
        position = match.end()
        count += 1
        if count > _MAX_STATEMENTS:
            raise PtxError(f"more than {_MAX_STATEMENTS} statements")


def split_operands(text: str) -> tuple[str, ...]:
    """Return the operands of a list, without blanks around them; brackets stay together."""
    if "{" not in text and "(" not in text and "[" not in text:
        return tuple(part.strip() for part in text.split(",")) if text.strip() else ()
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        if character in "{([":
            depth += 1
        elif character in "})]":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    return (*parts, text[start:].strip())


@dataclass(slots=True)
class _Scope:
    """A pair of braces inside a function: names declared there are its own."""

    number: int
    names: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _OpenFunction:
    header: Function
    body: list[Instruction] = field(default_factory=list)
    variables: dict[str, Variable] = field(default_factory=dict)
    scopes: list[_Scope] = field(default_factory=list)
    scope_count: int = 0
    labels: set[str] = field(default_factory=set)
    jumps: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)
    """Index of each jump and the scopes that it stands in."""
    registers: dict[str, int | None] = field(default_factory=dict)
    """Those of the function's own scope: how many numbers go with a name, None for none."""

    def add_label(self, name: str) -> None:
        if len(self.scopes) > 1:
            name = f"{name}@{self.scopes[-1].number}"
        self.labels.add(name)
        self.body.append(Instruction(parts=(LABEL,), operands=(name,)))

    def add_targets(self, text: str) -> None:
        """Give the label before them the targets of an indexed jump."""
        if self.body and self.body[-1].opcode == LABEL:
            label = self.body[-1]
            targets = split_operands(text.partition(" ")[2])
            self.body[-1] = replace(label, operands=(*label.operands, *targets))

    def declare(self, text: str) -> None:
        """Note registers, and give those of inner scopes names of their own."""
        scope = self.scopes[-1]
        for part in split_operands(text):
            match = _DECLARATOR.fullmatch(part)
            if match is None:
                raise PtxError("a register's declaration cannot be read")
            name = match[1]
            count = _integer(match[3]) if match[3] else None
            if len(self.scopes) < 2:
                self.registers[name] = count
            elif count is not None:
                if count > _MAX_SCOPED_REGISTERS:
                    raise PtxError(f"more than {_MAX_SCOPED_REGISTERS} registers in a scope")
                scope.names |= {f"{name}{i}": f"{name}{i}@{scope.number}" for i in range(count)}
            else:
                scope.names[name] = f"{name}@{scope.number}"

    def renamed(self, text: str) -> str:
        """Return operands with the names of the scopes that they stand in."""
        if not any(scope.names for scope in self.scopes):
            return text
        return _WORD.sub(lambda m: self._own_name(m[0]), text)

    def _own_name(self, word: str) -> str:
        for scope in reversed(self.scopes):
            if word in scope.names:
                return scope.names[word]
        return word

    def finished(self) -> Function:
        for index, scopes in self.jumps:
            jump = self.body[index]
            target = jump.operands[0]
            inner = (f"{target}@{number}" for number in reversed(scopes))
            name = next((n for n in inner if n in self.labels), target)
            self.body[index] = replace(jump, operands=(name, *jump.operands[1:]))
        return replace(
            self.header,
            body=tuple(self.body),
            variables=self.variables,
            registers=self.registers,
        )


@dataclass(slots=True)
class _Builder:
    """Sorts statements into a module."""

    target: str = ""
    functions: dict[str, Function] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    files: dict[int, str] = field(default_factory=dict)
    current: _OpenFunction | None = None
    location: Location | None = None
    calls: dict[tuple[int, int, int], Location] = field(default_factory=dict)
    """Last location at each place of the current function, to find callers by."""

    def add(self, match: re.Match[str]) -> None:
        kind = match.lastgroup
        if kind == "unread":
            # They end with the line for some readers only: the rest of it could hide a statement.
            raise PtxError(f"a line with {match['unread']} holds something else")
        if match["function"] is not None:
            self._open(match["function"], match["end"])
        elif kind == "brace":
            self._brace(match["brace"])
        elif kind == "line":
            self._line(match["line"])
        elif kind == "directive":
            self._directive(match["directive"])
        elif kind == "label":
            self._function("a label").add_label(match["label"])
        elif match["opcode"] is not None:
            self._instruction(match)

    def _function(self, what: str) -> _OpenFunction:
        if self.current is None:
            raise PtxError(f"{what} outside a function")
        return self.current

    def _open(self, header: str, end: str) -> None:
        match = _HEADER.match(header)
        if self.current is not None or match is None:
            raise PtxError("a function's header cannot be read")
        function = Function(
            name=match["name"],
            is_kernel=match["kind"] == "entry",
            is_declaration=end == ";",
            parameters=_parameter_names(match["parameters"] or ""),
            returned=_parameter_names(match["returned"] or ""),
            variables={},
        )
        if end == ";":
            self.functions.setdefault(function.name, function)
            return
        self.current = _OpenFunction(function, scopes=[_Scope(0)])
        self.location = None
        self.calls = {}

    def _brace(self, brace: str) -> None:
        function = self._function("a brace")
        if brace == "{":
            function.scope_count += 1
            function.scopes.append(_Scope(function.scope_count))
            if len(function.scopes) > _MAX_DEPTH:
                raise PtxError(f"more than {_MAX_DEPTH} scopes inside each other")
            return
        function.scopes.pop()
        if not function.scopes:
            self.functions[function.header.name] = function.finished()
            self.current = None

    def _line(self, text: str) -> None:
        if text.startswith(".loc"):
            self._locate(text)
        elif text.startswith(".target"):
            self.target = text[len(".target") :].split(",", maxsplit=1)[0].strip()
        elif (match := _FILE.match(text)) is not None:
            self.files[int(match[1])] = match[2]

    def _locate(self, text: str) -> None:
        match = _LOC.match(text)
        if match is None:
            return
        place = (int(match[1]), int(match[2]), int(match[3]))
        caller = None
        if match[4] is not None:
            at = (int(match[4]), int(match[5]), int(match[6]))
            caller = self.calls.get(at) or Location(file=at[0], line=at[1], column=at[2])
        depth, outer = 0, caller
        while outer is not None:
            depth, outer = depth + 1, outer.caller
        if depth > _MAX_DEPTH:
            caller = None
        location = Location(file=place[0], line=place[1], column=place[2], caller=caller)
        self.location = self.calls[place] = location

    def _directive(self, text: str) -> None:
        if text.startswith(".reg"):
            match = _REGISTER.match(text)
            if match is None:
                raise PtxError("a register's declaration cannot be read")
            self._function("a register").declare(match[1])
            return
        if text.startswith(".branchtargets"):
            self._function("a jump's targets").add_targets(text)
            return
        match = _VARIABLE.match(text)
        if match is not None:
            for variable in _variables(match):
                self._declare(variable)
        elif re.match(r"(?:\.\w+\s+)*\.(?:global|shared|const|local)\b", text):
            raise PtxError("a variable's declaration cannot be read")

    def _declare(self, variable: Variable) -> None:
        if self.current is None:
            known = self.variables
        else:
            known = self.current.variables
            if variable.space == "param":
                self.current.declare(variable.name)  # as a call's arguments are
        before = known.get(variable.name)
        if before is not None and not {before.space, variable.space}.isdisjoint(LASTING):
            raise PtxError("two variables have one name")
        known[variable.name] = variable

    def _instruction(self, match: re.Match[str]) -> None:
        function = self._function("an instruction")
        parts = tuple(match["opcode"].split("."))
        if parts[0] in ("bra", "brx"):
            scopes = tuple(scope.number for scope in function.scopes[1:])
            function.jumps.append((len(function.body), scopes))
        predicate = (match["predicate"] or "").lstrip("! \t\n")
        operands = split_operands(function.renamed(match["operands"]))
        if parts[0] in ("bra", "brx") and not operands:
            raise PtxError("a jump without a target")
        function.body.append(
            Instruction(
                parts=parts,
                operands=operands,
                predicate=function.renamed(predicate),
                location=self.location,
            )
        )

    def module(self) -> Module:
        if self.current is not None:
            raise PtxError("the last function does not end")
        if not self.target:
            raise PtxError("the text names no target")
        return Module(
            target=self.target,
            functions=self.functions,
            variables=self.variables,
            files=self.files,
        )


def _parameter_names(text: str) -> tuple[str, ...]:
    found = (_PARAMETER.search(part) for part in split_operands(text))
    return tuple(match[1] for match in found if match is not None)


def _integer(text: str) -> int:
    """Return the number that a length is, in whichever base the assembler reads it."""
    if _INTEGER.fullmatch(text) is None:
        raise PtxError("a length that is not a number")
    digits = text.rstrip("U").lower()
    base = {"0x": 16, "0b": 2}.get(digits[:2], 8 if digits[0] == "0" else 10)
    return int(digits, base)


def _variables(match: re.Match[str]) -> Iterator[Variable]:
    for part in split_operands(match["rest"]):
        declarator = _DECLARATOR.match(part)
        if declarator is None:
            raise PtxError("a variable's declaration cannot be read")
        size = type_bytes(match["type"])
        for length in _LENGTH.findall(declarator[2]):
            size *= _integer(length) if length else 0
        yield Variable(
            name=declarator[1],
            space=match["space"],
            size_bytes=size,
            has_values="=" in part[declarator.end() :],
            is_extern=".extern" in match["linkage"],
            is_managed=".managed" in match["attributes"],
            references=names_in(_STRING.sub(" ", part[declarator.end() :])),
        )
