#!/usr/bin/env python3
"""A log store in 60 lines, driven by `assay qualify --exec` (README.md, "Any program").

usage: example_log_store.py [--no-fsync]
A commit is one record: its length, its checksum, its lines. --no-fsync leaves the fsync out.
"""
import os
import struct
import sys
import zlib

SYNC = "--no-fsync" not in sys.argv
HEAD = struct.Struct("<II")


def apply(lines, data):
    for line in lines:
        word, key, *value = line.split(" ")
        if word == "put":
            data[key] = value[0]
        else:
            data.pop(key, None)


def recover(log, data):
    """Reads whole records; what comes after them was never acknowledged, and is cut off."""
    good = 0
    while len(head := log.read(HEAD.size)) == HEAD.size:
        length, checksum = HEAD.unpack(head)
        body = log.read(length)
        if length == 0 or len(body) < length or zlib.crc32(body) != checksum:
            break
        apply(body.decode().split("\n"), data)
        good += HEAD.size + length
    log.truncate(good)
    log.seek(good)


def main():
    log, data, batch = None, {}, []
    for line in map(str.strip, sys.stdin):
        word, _, rest = line.partition(" ")
        if word in ("put", "delete"):
            batch.append(line)
            continue
        if word == "open":
            log = os.fdopen(os.open(rest + "/log", os.O_RDWR | os.O_CREAT), "rb+", buffering=0)
            recover(log, data)
            if SYNC:
                directory = os.open(rest, os.O_RDONLY)
                os.fsync(log.fileno())
                os.fsync(directory)
            print("ok")
        elif word == "begin":
            batch = []
            continue
        elif word == "commit":
            body = "\n".join(batch).encode()
            log.write(HEAD.pack(len(body), zlib.crc32(body)) + body)
            if SYNC:
                os.fdatasync(log.fileno())
            apply(batch, data)
            print("ok")
        elif word == "get":
            print("value " + data[rest] if rest in data else "none")
        elif word == "scan":
            for key in sorted(data):
                print("entry", key, data[key])
            print("end")
        elif word == "close":
            log.close()
            print("ok")
        sys.stdout.flush()


main()
