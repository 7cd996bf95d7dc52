#!/usr/bin/env python3
"""Checks the layering of the tree and the size of its files; prints each offence, exits 1 on any.

Layering: what a folder may include from the tree is listed in ALLOWED, longest prefix first. A
store's own header (sqlite3.h, rocksdb/, lmdb.h, libpq-fe.h, engine/) may be included only where STORE_HEADERS
says. Sizes: a source file has at most MAX_LINES lines.

usage: layers.py [ROOT]   (default: the tree this script stands in)
"""
import pathlib
import re
import sys

MAX_LINES = 600

# What every folder but engine may include: errors as values, what a name is, and a directory for
# a test.
COMMON = ["adapters/result.h", "adapters/plain_name.h", "adapters/temporary_directory.h"]
# folder -> prefixes of the tree it may include; a folder may always include itself.
ALLOWED = {
    "engine": [],
    "adapters": ["engine/lode.h"],
    "adapters/conformance": ["adapters/"],
    "workloads": ["adapters/store.h", "adapters/table_store.h", *COMMON],
    "plots": COMMON,
    "harness": ["adapters/store.h", "adapters/table_store.h", *COMMON, "adapters/registry.h",
                "adapters/conformance/", "adapters/served/", "workloads/", "plots/", "harness/"],
    "harness/stats": COMMON,
    "harness/measure": COMMON,
    "harness/provenance": ["adapters/", "harness/measure/"],
    "harness/ledger": [*COMMON, "harness/provenance/sha256.h"],
}
# Who may include the interface of a store that is not ours.
STORE_HEADERS = {
    "adapters": re.compile(r"^(sqlite3\.h|lmdb\.h|rocksdb/.*|libpq-fe\.h)$"),
    # SQLite is also the query engine over ledgers.
    "harness/ledger": re.compile(r"^sqlite3\.h$"),
}
ANY_STORE = re.compile(r"^(sqlite3\.h|lmdb\.h|rocksdb/.*|libpq-fe\.h)$")
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]')
TOP = {"engine", "adapters", "workloads", "harness", "plots"}


def rule_of(path, table):
    best = ""
    for folder in table:
        if (path == folder or path.startswith(folder + "/")) and len(folder) > len(best):
            best = folder
    return best


def check(root):
    offences = []
    for file in sorted(p for top in TOP for p in (root / top).rglob("*")):
        if file.suffix not in {".h", ".cpp", ".c"} or not file.is_file():
            continue
        name = file.relative_to(root).as_posix()
        folder = file.parent.relative_to(root).as_posix()
        test = file.stem.endswith(("_test", "_benchmark"))
        lines = file.read_text(encoding="utf-8").splitlines()
        if len(lines) > MAX_LINES:
            offences.append(f"{name}:{MAX_LINES + 1}: longer than {MAX_LINES} lines")
        rule = rule_of(folder, ALLOWED)
        store_rule = rule_of(folder, STORE_HEADERS)
        for number, line in enumerate(lines, 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            target = match.group(1)
            if ANY_STORE.match(target):
                # Tests may look at a store directly, to hold what the harness says against it.
                if not test and not (store_rule and STORE_HEADERS[store_rule].match(target)):
                    offences.append(f"{name}:{number}: {folder} may not include a store's {target}")
            elif target.split("/")[0] in TOP and "/" in target:
                if rule == "" or target.startswith(rule + "/") or target.startswith(folder + "/"):
                    continue
                # A test inside the harness may use whatever the harness as a whole may.
                granted = ALLOWED["harness" if test and rule.startswith("harness") else rule]
                if not any(target.startswith(prefix) for prefix in granted):
                    offences.append(f"{name}:{number}: {folder} may not include {target}")
    return offences


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
    if root.is_file():
        root = root.parent.parent
    offences = check(root)
    for offence in offences:
        print(offence)
    if offences:
        print(f"layers: {len(offences)} offences", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
