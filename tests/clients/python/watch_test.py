"""Watching a job: what one or several streams of responses become."""

import unittest
from unittest import mock

import troupe
from troupe.proto.scheduler_pb2 import WatchJobResponse
from troupe.proto.status_pb2 import JobEvent, JobStatus, StepRecord

RUNNING = JobStatus(id=1, state="RUNNING")
SUCCEEDED = JobStatus(id=1, state="SUCCEEDED")


def response(status, steps=(), events=()):
    return WatchJobResponse(
        status=status,
        steps=[StepRecord(step=step) for step in steps],
        events=[JobEvent(text=text) for text in events],
    )


class FakeScheduler:
    """Answers each call of WatchJob with the next of `streams`, as cluster and as
    connection. An error among the responses breaks the stream."""

    def __init__(self, *streams):
        self.streams = iter(streams)
        self.asked = []

    def connection(self):
        return self

    def forget(self, connection):
        pass

    def stream(self, method, request, response, seconds):
        self.asked.append((request.from_step, request.from_event))
        for item in next(self.streams):
            if isinstance(item, Exception):
                raise item
            yield item


@mock.patch("time.sleep")  # between two connections
class Watch(unittest.TestCase):
    def watch(self, *streams):
        self.scheduler = FakeScheduler(*streams)
        said = []
        for update in troupe.Job(self.scheduler, JobStatus(id=1)).watch():
            if isinstance(update, StepRecord):
                said.append(update.step)
            elif isinstance(update, JobEvent):
                said.append(update.text)
            else:
                said.append(troupe.state_name(update))
        return said

    def test_a_job_to_its_end(self, _):
        said = self.watch(
            [
                response(RUNNING, events=["queued"]),
                response(RUNNING, steps=[1]),
                response(SUCCEEDED, steps=[2], events=["succeeded"]),
            ]
        )
        self.assertEqual(said, ["queued", "RUNNING", 1, "succeeded", 2, "SUCCEEDED"])

    # The scheduler sends a long curve in several responses, each with the status.
    def test_the_end_of_a_job_is_the_last_update(self, _):
        said = self.watch(
            [
                response(SUCCEEDED, steps=[1, 2], events=["succeeded"]),
                response(SUCCEEDED, steps=[3]),
            ]
        )
        self.assertEqual(said, ["succeeded", 1, 2, 3, "SUCCEEDED"])

    def test_a_stream_that_breaks_within_a_long_curve_is_continued(self, _):
        said = self.watch(
            [response(SUCCEEDED, steps=[1, 2], events=["succeeded"]), troupe.Unavailable("")],
            [troupe.Unavailable("not yet")],
            [response(SUCCEEDED, steps=[3])],
        )
        self.assertEqual(said, ["succeeded", 1, 2, 3, "SUCCEEDED"])
        self.assertEqual(self.scheduler.asked, [(0, 0), (2, 1), (2, 1)])


if __name__ == "__main__":
    unittest.main()
