"""What a setting may be, in words: for the reference, and for whoever gave another value."""

from pydantic.json_schema import JsonSchemaValue

from rota.config import Settings


def allowed_values(name: str, *, quote: str = "") -> str:
    """The bounds of a number or the names to choose from, as the schema of the setting has them."""
    schema = _schema(name)
    words = Settings.model_json_schema()["properties"][name].get("words") or schema.get("words")
    if words is not None:
        return str(words)
    if "pattern" in schema:
        return ", ".join(f"{quote}{choice}{quote}" for choice in schema["pattern"].strip("^$()").split("|"))
    if schema.get("type") not in {"integer", "number"}:
        return "a path" if schema.get("format") == "path" else "a text"
    kind = "whole number" if schema["type"] == "integer" else "number"
    high = schema["maximum"]
    if "exclusiveMinimum" in schema:
        return f"a {kind}, more than {schema['exclusiveMinimum']:g}, at most {high:g}"
    return f"a {kind}, {schema['minimum']:g} to {high:g}"


def refusal(name: str, given: object) -> str:
    """The sentence that answers a value which is none of these."""
    is_choice = "pattern" in _schema(name) and "|" in _schema(name)["pattern"]
    return f"Give {'one of ' if is_choice else ''}{allowed_values(name)}; {str(given)!r} is none."


def _schema(name: str) -> JsonSchemaValue:
    """What a value has to be where one is given: a setting may also be left out."""
    schema: JsonSchemaValue = Settings.model_json_schema()["properties"][name]
    return next((kind for kind in schema.get("anyOf", []) if kind.get("type") != "null"), schema)
