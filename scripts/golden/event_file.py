#!/usr/bin/env python3
"""Writes tests/golden/events.tfevents with TensorBoard's own messages and record writer, for tests/event_file_test.cpp.

    python scripts/golden/event_file.py tests/golden

In a virtual environment that has tensorboard (tests/golden was written with 2.21.0).
"""

import pathlib
import sys

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter


def point(wall_time, step, tag, value):
    return Event(wall_time=wall_time, step=step, summary=Summary(value=[Summary.Value(tag=tag, simple_value=value)]))


EVENTS = [
    Event(wall_time=1700000000.25, file_version="brain.Event:2"),
    Event(wall_time=1700000000.5, step=6, session_log=SessionLog(status=SessionLog.START)),
    point(1700000001.0, 6, "Train/Samples/train_loss", 3.4375),
    point(1700000001.0, 300, "Train/Samples/lr", 1e-3),
    point(1700000002.0, 2**40 + 5, "Train/Samples/loss_scale", 2.0**32),
    point(1700000003.0, 0, "Validation/Samples/loss", 0.0),
    point(0.0, 7, "a" * 200, -float("inf")),
]

with open(pathlib.Path(sys.argv[1]) / "events.tfevents", "wb") as file:
    writer = RecordWriter(file)
    for event in EVENTS:
        writer.write(event.SerializeToString(deterministic=True))
    writer.flush()
