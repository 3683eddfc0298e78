"""What the package tensorboard reads from a folder of event files, as JSON: for
each tag a list of [step, value]. An oracle for worker/metrics/event_file.

    python3 tests/oracle/read_event_files.py runs/tb
"""

import json
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

ALL = 0  # of a curve's points

events = EventAccumulator(sys.argv[1], size_guidance={"scalars": ALL, "tensors": ALL})
events.Reload()
print(
    json.dumps(
        {
            tag: [[point.step, point.value] for point in events.Scalars(tag)]
            for tag in events.Tags()["scalars"]
        }
    )
)
