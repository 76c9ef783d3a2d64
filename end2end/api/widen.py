"""The document as the fuzzer reads it: with what the API takes beyond what the
document tells people to send.

The leniency is part of the protocol (docs/API-DESIGN.md): numbers for texts, words
for booleans, nonsense in `limit` and `offset`. The document does not repeat it at
every field, because clients made from it would offer it. Without this, the check
that bad input is refused would find nothing but that."""

import copy

WORDS = ["t", "y", "yes", "true", "on", "1", "f", "n", "no", "false", "off", "0"]

# Nonsense in them is ignored.
LENIENT = ("limit", "offset", "order", "ordering", "page")


def widened(document, ids):
    """A copy for the fuzzer. `ids` are values for parameters of paths by the name of
    the collection before them; otherwise random ids would meet nothing at all."""
    wide = copy.deepcopy(document)
    for path, item in wide["paths"].items():
        for operation in item.values():
            for parameter in operation["parameters"]:
                if parameter["in"] == "query":
                    parameter["schema"] = _query(parameter)
                elif parameter["in"] == "path":
                    known = ids.get(_collection(path, parameter["name"]))
                    if known:
                        parameter["schema"] = {"enum": known}
    for name, schema in wide["components"]["schemas"].items():
        if name.endswith("Input"):
            schema["properties"] = {
                field: _field(schema) for field, schema in schema["properties"].items()
            }
    return wide


def _query(parameter):
    schema = parameter["schema"]
    # An empty value is none, and a time is read with or without its zone.
    if parameter["name"] in LENIENT or schema.get("format") == "date-time":
        return {"type": "string"}
    if "enum" in schema or "format" in schema:
        return {"anyOf": [schema, {"const": ""}]}
    return schema


def _field(schema):
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else list(kinds or [])
    schema = {key: value for key, value in schema.items() if key not in ("readOnly",)}
    if schema.get("format") == "date-time":
        schema.pop("format")
    if "array" in kinds:
        schema["items"] = _field(schema.get("items", {}))
    ways = [schema]
    if "string" in kinds and "enum" not in schema and "format" not in schema:
        ways.append({"type": "number"})
    if "boolean" in kinds:
        ways.append({"enum": [0, 1, *WORDS, *[word.upper() for word in WORDS]]})
        if "null" in kinds:
            ways.append({"enum": ["", "null"]})
    if "integer" in kinds:
        texts = [str(number) for number in schema.get("enum", []) if number is not None]
        ways.append({"enum": texts} if texts else {"type": "string", "pattern": r"^-?\d{1,9}$"})
    return ways[0] if len(ways) == 1 else {"anyOf": ways}


def _collection(path, name):
    parts = path.strip("/").split("/")
    return parts[parts.index("{" + name + "}") - 1]
