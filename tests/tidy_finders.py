"""How a house rule finds what it bans: a finder goes from one source to the lines that break the rule."""

import ast
import functools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One file of the project: its path from the root, with forward slashes, and its text."""

    path: str
    text: str


Finder = Callable[[Source], Iterator[int]]


def text_matching(pattern: str, *, flags: re.RegexFlag = re.NOFLAG) -> Finder:
    """Lines where the text has the pattern, comments and strings included."""
    compiled = re.compile(pattern, flags)

    def find(source: Source) -> Iterator[int]:
        for match in compiled.finditer(source.text):
            yield source.text.count("\n", 0, match.start()) + 1

    return find


def path_matching(pattern: str) -> Finder:
    """The first line of a file whose path has the pattern."""
    compiled = re.compile(pattern)

    def find(source: Source) -> Iterator[int]:
        if compiled.search(source.path):
            yield 1

    return find


def uses_of(*names: str) -> Finder:
    """Lines that use one of these full names (`datetime.datetime.now`), whatever they were imported as."""

    def find(source: Source) -> Iterator[int]:
        tree = parsed(source)
        imported = imported_names(source)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name | ast.Attribute) and full_name(node, imported) in names:
                yield node.lineno

    return find


def catch_alls(source: Source) -> Iterator[int]:
    """Lines that catch or suppress every exception, unless the handler ends by raising it again."""
    imported = imported_names(source)
    for node in ast.walk(parsed(source)):
        match node:
            case ast.ExceptHandler(body=[*_, ast.Raise(exc=None)]):
                pass
            case ast.ExceptHandler(type=caught) if _is_everything(caught):
                yield node.lineno
            case ast.Call(func=called, args=[*arguments]) if (
                full_name(called, imported) == "contextlib.suppress"
            ):
                if any(_is_everything(argument) for argument in arguments):
                    yield node.lineno
            case _:
                pass


def definitions_with_words(*banned: str) -> Finder:
    """Lines that define a name with one of these words in it, however spelt: `cron job` is in `CronJobs`."""
    patterns = [re.compile(rf" {word}s? ") for word in banned]

    def find(source: Source) -> Iterator[int]:
        for name, line in defined_names(parsed(source)):
            spaced = f" {' '.join(re.findall('[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+', name))} ".lower()
            if any(pattern.search(spaced) for pattern in patterns):
                yield line

    return find


def files_longer_than(lines_max: int) -> Finder:
    """The first line too many."""

    def find(source: Source) -> Iterator[int]:
        if len(source.text.splitlines()) > lines_max:
            yield lines_max + 1

    return find


def functions_longer_than(lines_max: int) -> Finder:
    """Functions with more lines than that, from `def` to the last, docstring included."""

    def find(source: Source) -> Iterator[int]:
        for node in ast.walk(parsed(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _height(node) > lines_max:
                yield node.lineno

    return find


def missing_docstring(source: Source) -> Iterator[int]:
    """The first line of a module that does not say what it is; an empty file is nothing to speak of."""
    if source.text.strip() and ast.get_docstring(parsed(source)) is None:
        yield 1


@functools.cache
def parsed(source: Source) -> ast.Module:
    """The syntax tree of a module."""
    return ast.parse(source.text, filename=source.path)


@functools.cache
def imported_names(source: Source) -> dict[str, str]:
    """What each imported name stands for: `{"dt": "datetime", "sleep": "time.sleep"}`."""
    names: dict[str, str] = {}
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                names[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def full_name(node: ast.expr, imported: dict[str, str]) -> str:
    """The full name that an expression `a.b.c` stands for, empty where it is no such expression."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        attributes.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([imported.get(node.id, node.id), *reversed(attributes)])


def defined_names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Every name that a module gives to something, with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node.lineno
            case ast.arg():
                yield node.arg, node.lineno
            case ast.Name(ctx=ast.Store()):
                yield node.id, node.lineno
            case ast.Attribute(ctx=ast.Store()):
                yield node.attr, node.lineno
            case ast.alias(asname=str(name)):
                yield name, node.lineno
            case _:
                pass


def _height(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def _is_everything(caught: ast.expr | None) -> bool:
    if isinstance(caught, ast.Tuple):
        return any(_is_everything(element) for element in caught.elts)
    return caught is None or (isinstance(caught, ast.Name) and caught.id in {"Exception", "BaseException"})
