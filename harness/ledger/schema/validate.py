#!/usr/bin/env python3
"""Validates the lines of ledgers against the JSON Schema of the version that each was written in.

usage: validate.py LEDGER...        every line; prints each that does not fit, exits 1 on any
       validate.py --offences LEDGER...  takes each demanded member out of the first record of every
                                    kind, and puts a wrong type in its place: each must be refused

Needs python3-jsonschema. A last line without its line feed is no record and is left out.
"""
import copy
import json
import multiprocessing
import pathlib
import sys

import jsonschema

FOLDER = pathlib.Path(__file__).resolve().parent


def load_schemas():
    found = {}
    for path in sorted(FOLDER.glob("v*.schema.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        jsonschema.Draft202012Validator.check_schema(schema)
        found[int(path.name[1:].split(".")[0])] = schema
    return found


SCHEMAS = load_schemas()
VALIDATORS = {n: jsonschema.Draft202012Validator(schema) for n, schema in SCHEMAS.items()}


def first_problem(record):
    """What is wrong with a record, with its place in it; None when it fits."""
    version = record.get("schema") if isinstance(record, dict) else None
    if not isinstance(version, int) or version not in VALIDATORS:
        return f"schema {version} is not known"
    errors = VALIDATORS[record["schema"]].iter_errors(record)
    error = jsonschema.exceptions.best_match(errors)
    if error is None:
        return None
    return f"/{'/'.join(str(part) for part in error.absolute_path)}: {error.message[:300]}"


def records_of(path):
    for number, line in enumerate(pathlib.Path(path).read_bytes().split(b"\n")[:-1], 1):
        yield number, json.loads(line)


def validate(paths):
    wrong = records = 0
    places = [(path, number, record) for path in paths for number, record in records_of(path)]
    with multiprocessing.Pool() as pool:  # a record takes milliseconds, and there are thousands
        found = pool.imap(first_problem, (record for _, _, record in places), chunksize=64)
        for (path, number, _), problem in zip(places, found):
            records += 1
            if problem:
                wrong += 1
                print(f"{path}:{number}: {problem}")
    print(f"{records} records of {len(paths)} ledgers, {wrong} do not fit their schema")
    return 1 if wrong or not records else 0


def offences_of(record):
    """Copies of a record, each with one demanded member missing or of another type."""
    schema = SCHEMAS[record["schema"]]
    places = [((), schema["required"])]
    if record["kind"] in schema["$defs"] and record.get("source") is None:
        places.append((("body",), schema["$defs"][record["kind"]]["required"]))
    for place, members in places:
        for member in members:
            for change in ("missing", "type"):
                bad = copy.deepcopy(record)
                at = bad
                for part in place:
                    at = at[part]
                if change == "missing":
                    del at[member]
                else:
                    at[member] = "text" if isinstance(at[member], list) else [0.5]
                yield f"{'/'.join((*place, member))} {change}", bad


def plant(paths):
    kinds = {}
    for path in paths:
        for _, record in records_of(path):
            kinds.setdefault((record["schema"], record["kind"]), record)
    accepted = planted = 0
    for (schema, kind), record in sorted(kinds.items()):
        for name, bad in offences_of(record):
            planted += 1
            if first_problem(bad) is None:
                accepted += 1
                print(f"accepted though wrong: schema {schema}, {kind}: {name}")
    print(f"{planted} offences planted in records of {len(kinds)} kinds, {accepted} accepted")
    return 1 if accepted or not planted else 0


def main():
    arguments = sys.argv[1:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__, file=sys.stderr)
        return 2
    if arguments[0] == "--offences":
        return plant(arguments[1:])
    return validate(arguments)


if __name__ == "__main__":
    sys.exit(main())
