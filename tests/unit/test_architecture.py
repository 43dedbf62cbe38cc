"""Protects the shape of the package: who imports whom, sizes, names, and tests without patches."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGE = _ROOT / "masakari_ng"
_MODULES = sorted(_PACKAGE.rglob("*.py"))
_TESTS = sorted((_ROOT / "tests").rglob("*.py"))

_EVERYTHING = {path.stem for path in _PACKAGE.iterdir()} - {"__init__", "demo"}
# What each part may import of ours, besides itself.
_MAY_IMPORT: dict[str, set[str]] = {
    "__init__": set(),
    "errors": set(),
    "logs": set(),
    "metrics": set(),
    "conf": {"domain"},
    "domain": {"errors"},
    "clock": {"errors"},
    "coordination": {"errors"},
    "compute": {"errors"},
    "db": {"domain", "errors"},
    "messaging": {"domain", "errors"},
    "operations": {"compute", "coordination", "db", "domain", "errors", "messaging"},
    "recovery": {"clock", "compute", "coordination", "db", "domain", "errors"},
    "engine": {"recovery", "messaging", "db", "clock", "coordination", "domain", "errors"},
    "api": {"operations", "domain", "errors"},
    "cmd": _EVERYTHING | {"demo"},
    "wsgi": _EVERYTHING,
    "demo": _EVERYTHING,
}
_BY_ALL = {"logs", "metrics"}
# The only parts that may import a library.
_HOMES: dict[str, set[str]] = {
    "alembic": {"db"},
    "amqp": {"messaging"},
    "eventlet": {"cmd"},
    "falcon": {"api"},
    "granian": {"cmd"},
    "greenlet": {"cmd"},
    "jsonschema": {"api"},
    "keystoneauth1": {"compute", "conf"},
    "keystonemiddleware": {"api"},
    "kombu": {"messaging"},
    "novaclient": {"compute"},
    "oslo_db": {"db", "conf"},
    "oslo_middleware": {"api"},
    "oslo_policy": {"api"},
    "prometheus_client": {"metrics"},
    "pymysql": {"db"},
    "rich": {"cmd", "demo"},
    "sqlalchemy": {"db"},
    "taskflow": {"recovery"},
    "tooz": {"coordination"},
    "webob": {"api"},
}
_ALSO_ALLOWED = {
    # (module or None for every one, beginning of what it imports)
    (None, "sqlalchemy.orm.Session"),  # as a type
    ("db/migrate.py", "taskflow."),  # its tables are made with ours
}
_BANNED_NAMES = {"base", "common", "helper", "helpers", "misc", "util", "utils"}
_MODULE_LINES = 400
_FUNCTION_LINES = 60


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def _part(path: Path) -> str:
    """`db` for masakari_ng/db/hosts.py, `clock` for masakari_ng/clock.py."""
    return path.relative_to(_PACKAGE).with_suffix("").parts[0]


def _imports(path: Path) -> Iterator[str]:
    """Dotted names that a module imports, down to the imported attribute."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{'.' * node.level}{node.module}.{alias.name}" for alias in node.names)


def _exempt(path: Path, imported: str) -> bool:
    module = str(path.relative_to(_PACKAGE))
    return any(
        where in {None, module} and imported.startswith(what) for where, what in _ALSO_ALLOWED
    )


def test_our_imports_point_down():
    wrong = [
        f"{path.relative_to(_ROOT)}: {imported}"
        for path in _MODULES
        for imported in _imports(path)
        if imported.startswith((".", "masakari_ng."))
        and imported.split(".")[1] not in _MAY_IMPORT[_part(path)] | _BY_ALL | {_part(path)}
    ]

    assert wrong == []


def test_each_library_appears_in_its_part_only():
    wrong = [
        f"{path.relative_to(_ROOT)}: {imported}"
        for path in _MODULES
        for imported in _imports(path)
        if _part(path) not in _HOMES.get(imported.split(".")[0], {_part(path)})
        and not _exempt(path, imported)
    ]

    assert wrong == []


def test_modules_and_functions_are_short():
    long_modules = [
        f"{path.relative_to(_ROOT)}: {lines} lines"
        for path in _MODULES
        if (lines := len(path.read_text().splitlines())) > _MODULE_LINES
    ]
    long_functions = [
        f"{path.relative_to(_ROOT)}:{node.lineno}: {node.name}"
        for path in _MODULES
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno >= _FUNCTION_LINES
    ]

    assert long_modules + long_functions == []


def test_no_module_is_named_for_nothing_in_particular():
    wrong = [
        str(path.relative_to(_ROOT))
        for path in _MODULES + _TESTS
        if _BANNED_NAMES & set(path.relative_to(_ROOT).with_suffix("").parts)
    ]

    assert wrong == []


def test_tests_replace_nothing_in_modules_or_objects():
    wrong = [
        f"{path.relative_to(_ROOT)}: {imported}"
        for path in _TESTS
        for imported in _imports(path)
        if imported.split(".")[0] in {"mock", "pytest_mock"} or "unittest.mock" in imported
    ] + [
        f"{path.relative_to(_ROOT)}:{node.lineno}: monkeypatch.{node.attr}"
        for path in _TESTS
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Attribute)
        and node.attr in {"setattr", "delattr"}
        and isinstance(node.value, ast.Name)
    ]

    assert wrong == []
