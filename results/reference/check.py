#!/usr/bin/env python3
"""Checks the published figures: against schema.json, and that no id occurs twice.

usage: check.py [FOLDER]    (this folder when none is given)
"""
import collections
import json
import pathlib
import sys

import jsonschema

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
schema = json.loads((folder / "schema.json").read_text())
faults = []
ids = collections.Counter()
files = sorted(path for path in folder.glob("*.json") if path.name != "schema.json")
for path in files:
    document = json.loads(path.read_text())
    validator = jsonschema.Draft202012Validator(schema)
    faults += [f"{path.name}: {error.json_path}: {error.message}"
               for error in validator.iter_errors(document)]
    if document.get("system") != path.stem:
        faults.append(f"{path.name}: the system is named {document.get('system')}")
    ids.update(figure.get("id") for figure in document.get("figures", []))
faults += [f"{name}: {count} figures have this id" for name, count in ids.items() if count > 1]
if not files:
    faults.append(f"{folder}: no file of figures")
print("\n".join(faults) if faults else f"{len(files)} systems, {sum(ids.values())} figures")
sys.exit(1 if faults else 0)
