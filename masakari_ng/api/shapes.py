"""JSON schemas of what the views make, found by letting them look at schemas.

A view that gets schemas in the place of values answers with the schema of its JSON.
"""

import typing
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Self

Json = dict[str, Any]

_NAMES: Mapping[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}


def of_view(view: Callable[..., Any]) -> Json:
    """The schema of what a view makes of a record, or of many."""
    hint = next(iter(typing.get_type_hints(view).values()))
    if is_dataclass(hint):
        return of_example(view(_Probe(hint)))
    return of_example(view([_Probe(typing.get_args(hint)[0])]))


def of_example(value: Any) -> Json:
    """The schema of JSON like this; a list has items like its first."""
    if isinstance(value, _Leaf):
        return dict(value)
    if isinstance(value, Mapping):
        properties = {key: of_example(item) for key, item in value.items()}
        return {"type": "object", "properties": properties, "required": [*properties]}
    if isinstance(value, list):
        return {"type": "array", **({"items": of_example(value[0])} if value else {})}
    return {"type": _NAMES[type(value)]}


class _Probe:
    """Stands for a record before its view; its attributes are the schemas of their types."""

    def __init__(self, record: Any) -> None:
        hints = typing.get_type_hints(record)
        for field in fields(record):
            setattr(self, field.name, _typed(hints[field.name]))


class _Leaf(Json):
    """A schema that lets a view format it."""

    def isoformat(self, **_form: str) -> Self:
        return self


def _typed(hint: Any) -> Any:
    """A schema for a type, a probe for a record."""
    if isinstance(hint, UnionType):
        inner = _typed(next(kind for kind in typing.get_args(hint) if kind is not NoneType))
        null = {"enum": [*inner["enum"], None]} if "enum" in inner else {}
        return _Leaf({**inner, "type": [inner["type"], "null"], **null})
    kind, inside = typing.get_origin(hint), typing.get_args(hint)
    if kind is tuple:
        return [_typed(inside[0])]
    if kind is dict:
        return _Leaf({"type": "object", "additionalProperties": _typed(inside[1])})
    if is_dataclass(hint):
        return _Probe(hint)
    return _Leaf(_simple(hint))


def _simple(hint: type) -> Json:
    if issubclass(hint, datetime):
        return {"type": "string", "description": "`YYYY-MM-DDThh:mm:ss.ffffff`, UTC."}
    if issubclass(hint, StrEnum):
        return {"type": "string", "enum": [str(member) for member in hint]}
    return {"type": _NAMES[hint]}
