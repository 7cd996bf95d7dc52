#!/usr/bin/env python3
"""Fails when a page names a flag or a verb that no help of the assay command knows.

Usage: documented_flags.py ASSAY PAGE...
"""
import re
import subprocess
import sys

OTHER_PROGRAMS = re.compile(r"\b(cmake|git)\b")


def help_of(assay, *words):
    return subprocess.run([assay, *words, "--help"], capture_output=True, text=True).stdout


def main():
    assay, pages = sys.argv[1], sys.argv[2:]
    known = help_of(assay)
    verbs = re.findall(r"^  ([a-z][a-z-]+) ", known, re.M)
    for verb in list(verbs):
        text = help_of(assay, verb)
        known += text
        subverbs = text.partition("Subcommands")[2]
        for subverb in re.findall(r"^  ([a-z][a-z-]+) ", subverbs, re.M):
            known += help_of(assay, verb, subverb)
    flags = set(re.findall(r"--[a-z][a-z0-9-]+", known))
    wrong = 0
    for page in pages:
        with open(page, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                named = [] if OTHER_PROGRAMS.search(line) else re.findall(
                    r"(?<![\w-])--[a-z][a-z0-9-]+", line)
                missing = [one for one in named if one not in flags]
                missing += [one for one in re.findall(r"(?:`|/)assay ([a-z][a-z-]+)", line)
                            if one not in verbs]
                for one in missing:
                    print(f"{page}:{number}: assay knows no {one}")
                    wrong += 1
    if not verbs:
        sys.exit("the command's help lists no verbs")
    sys.exit(1 if wrong else 0)


main()
