#!/usr/bin/env python3
"""Writes the evidence map: one line for every figure that a recorded experiment decided, with what
it takes to find and repeat it. Reads nothing but ledgers/*/ledger.jsonl.

usage: evidence.py [--check]
  --check  write nothing; exit status 1 when a line of results/evidence.csv is not what the ledgers
           say. Results that it has not, as those of one's own demo, are no fault.
"""
import csv
import hashlib
import io
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "results" / "evidence.csv"
COLUMNS = ["id", "experiment", "result", "outcome", "figure", "value", "low", "high", "unit", "n",
           "durability", "proof", "version", "source_commit", "dirty", "date", "machine", "record"]


def rows_of(ledger):
    """One dictionary a figure: the arms' rows and the comparisons of every verdict."""
    plans = {}
    for line in ledger.read_text().splitlines():
        record = json.loads(line)
        body = record["body"]
        if record["kind"] == "plan":
            plans[body["result"]] = body
        if record["kind"] != "verdict":
            continue
        provenance = plans[body["result"]]["provenance"]
        metric = body["metric"]
        unit = "operations/s" if metric == "throughput" else "ns"
        common = {
            "experiment": body["experiment"], "result": body["result"],
            "outcome": body["outcome"], "source_commit": provenance["source"]["commit"],
            "dirty": provenance["source"]["dirty"], "date": record["time"],
            "machine": provenance["fingerprint"][:16],
            "record": hashlib.sha256(line.encode()).hexdigest(),
        }
        stem = f"{body['experiment']}:{body['result']}"
        for row in body["rows"]:
            low, high = row["interval"] if isinstance(row["interval"], list) else ("", "")
            yield common | {
                "id": f"{stem}:{row['arm']}", "figure": metric,
                "value": row.get("value", row["geometric_mean"]),
                "low": low, "high": high, "unit": unit, "n": row["n"],
                "durability": row["durability"], "proof": row["proof"],
                "version": f"{row['store']} {row['version']}"}
        for one in body["comparisons"]:
            if not isinstance(one["ratio"], (int, float)):
                continue
            yield common | {
                "id": f"{stem}:{one['a']}/{one.get('b') or 'baseline'}",
                "figure": f"ratio, {one['kind']}: {one['verdict']}", "value": one["ratio"],
                "low": one["interval"][0], "high": one["interval"][1], "unit": "ratio",
                "n": one["n"]}


def evidence():
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    ids = set()
    for ledger in sorted((ROOT / "ledgers").glob("*/ledger.jsonl")):
        for row in rows_of(ledger):
            if row["id"] in ids:
                sys.exit(f"evidence: {ledger}: two figures have the id {row['id']}")
            ids.add(row["id"])
            writer.writerow({key: f"{value:.6g}" if isinstance(value, float) else value
                             for key, value in row.items()})
    return text.getvalue()


def main():
    made = evidence()
    if sys.argv[1:] == ["--check"]:
        claimed = TARGET.read_text().splitlines()
        wrong = [line for line in claimed if line not in set(made.splitlines())]
        if wrong or len(claimed) < 2:
            sys.exit("\n".join(wrong[:5]) + "\nevidence: not what the ledgers say; "
                     "run scripts/evidence.py")
        print(f"evidence: {len(claimed) - 1} figures")
        return
    if sys.argv[1:]:
        sys.exit(__doc__)
    TARGET.write_text(made)
    print(f"{TARGET.relative_to(ROOT)}: {made.count(chr(10)) - 1} figures")


main()
