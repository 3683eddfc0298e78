"""What abuse.py holds the cluster to: what docs/operations.md, docs/recovery.md
and docs/job.md promise, as checks of what is seen from outside."""

import collections
import re
import time

STUCK_SECONDS = 120  # twice what a job without progress is given (hang_min)
REST_SECONDS = 60   # for which all is left alone at the end

# A failure must say one of these, and more than that.
CAUSES = [
    r"was lost in .*: .+", r"left in .*: .+", r"was asked to end", r"did not come",
    r"came back without its rank in .*: (its process was started again|it ha[sd] .+)",
    r"ENOSPC", r"EACCES", r"was stopped: .+", r"no progress for", r"was not ready within",
    r"not ready", r"connection", r"leads outside|is below no root|--root",
    r"checkpoint\.directory", r"too few|waits for", r"recovery\.restarts",
    r"holds|held|belongs to|is being saved",
]
NO_CAUSE = re.compile(r"^$|unknown error|internal error", re.IGNORECASE)
RECOVERS = ("pair", "full-disk", "elastic", "recovers")


def waits_for_busy_workers(job):
    return job["state"] == "QUEUED" and "busy with" in job.get("reason", "")


def seconds_run_again(description):
    """How long the steps take that the newest attempt runs again: a job that lost its
    only copies begins anew, and shows no new step until it is where it was."""
    if not description:
        return 0
    again = 0
    for event in description.get("events", []):
        found = re.search(r"(\d+) run again", event.get("text", ""))
        again = int(found.group(1)) if found else again
    step_seconds = (description.get("last_step") or {}).get("step_seconds", 0)
    return 3 * again * max(step_seconds, 0.01)


class Promises:
    ALL = ("the scheduler answers", "no daemon ends by itself", "no job is stuck",
           "every failure names its cause", "a job with recovery does not fail",
           "no job fails because of the bad worker", "no checkpoint is lost",
           "each step is in the curve once", "a short job has all of its steps",
           "two clusters do not save in one directory", "each job gets on when left alone",
           "a job that is cancelled is saved")

    def __init__(self, say):
        self.say = say
        self.counts = collections.Counter()
        self.breaks = []
        self.moved = {}    # name: (what was seen to change, since when)
        self.waits = {}    # name: whether it is queued while workers are busy
        self.newest = {}   # job: step of its newest checkpoint that was seen
        self.silent_since = None
        self.rest = {}
        self.aside = ""
        self.seconds = collections.Counter()

    def broken(self, promise, how):
        self.breaks.append((promise, how))
        self.say("", f"BROKEN: {promise}: {how}")

    def hold(self, promise, kept, how=""):
        self.counts[promise] += 1
        if not kept:
            self.broken(promise, how)

    def answered(self, answer, undisturbed):
        """Within 30 s of not being disturbed."""
        now = time.monotonic()
        if answer or not undisturbed:
            self.silent_since = None
            self.counts["the scheduler answers"] += answer
            return
        self.silent_since = self.silent_since or now
        if now - self.silent_since > 30:
            self.silent_since = now
            self.broken("the scheduler answers", "not for 30 s")

    def look(self, name, job, bad, describe):
        """At a job's row; `describe` asks for its description."""
        now = time.monotonic()
        seen = (job["id"], job["state"], int(job.get("steps_done", 0)), job.get("attempt"))
        if self.moved.get(name, (None,))[0] != seen:
            self.moved[name] = (seen, now)
        stood = now - self.moved[name][1]
        self.waits[name] = waits_for_busy_workers(job)
        if stood >= STUCK_SECONDS:
            stood = 0 if self.waits[name] else stood - seconds_run_again(describe())
        self.hold("no job is stuck", stood < STUCK_SECONDS,
                  f"{name} (job {job['id']}): {job['state']} after step "
                  f"{job.get('steps_done', 0)} for {stood:.0f} s: {job.get('reason', '')}")
        if stood >= STUCK_SECONDS:
            self.moved[name] = (seen, now)  # said once, not each time
        for checkpoint in job.get("checkpoints", []):
            step = int(checkpoint.get("step", 0))
            self.newest[job["id"]] = max(step, self.newest.get(job["id"], 0))
        if job["state"] != "FAILED":
            return
        reason = job.get("reason", "")
        self.hold("every failure names its cause",
                  not NO_CAUSE.search(reason) and any(re.search(c, reason) for c in CAUSES),
                  f"{name} (job {job['id']}): {reason!r}")
        self.hold("a job with recovery does not fail", name not in RECOVERS,
                  f"{name} (job {job['id']}): {reason}")
        self.hold("no job fails because of the bad worker",
                  not reason.startswith(bad + " "), f"{name} (job {job['id']}): {reason}")

    def ended(self, name, description, steps):
        """Of a job that has ended: its curve, and where its attempts began."""
        number = description.get("id")
        done = [int(step["step"]) for step in description.get("steps", [])]
        whole = done == list(range(done[0], done[0] + len(done))) if done else True
        self.hold("each step is in the curve once", whole,
                  f"{name} (job {number}): {len(done)} steps from {done[:1]} to {done[-1:]}")
        if steps is not None and description.get("state") == "SUCCEEDED":
            self.hold("a short job has all of its steps", len(done) == steps,
                      f"job {number} has {len(done)} of {steps}")
        begins = [int(step) for event in description.get("events", [])
                  for step in re.findall(r"goes on with step (\d+)", event.get("text", ""))]
        newest = [int(c.get("step", 0)) for c in description.get("checkpoints", [])]
        lost = self.newest.get(number, 0) > max(newest, default=0)
        self.hold("no checkpoint is lost", not lost,
                  f"{name} (job {number}): the newest was of step "
                  f"{self.newest.get(number)}, and is of {newest[-1:]}")
        self.seconds["attempts that went on"] += len(begins)

    def second_cluster(self, jobs, holder):
        """Its job must not have saved while the other one held the directory."""
        state = (holder or {}).get("state")
        if state not in ("RUNNING", "RECOVERING") or not jobs:
            return
        job = jobs[0]
        self.hold("two clusters do not save in one directory", not job.get("checkpoints"),
                  f"the second one saved {job.get('checkpoints')}")
        self.say("", f"the second cluster's job: {job['state']} {job.get('reason', '')[:140]}")

    def bad_one_is_aside(self, why):
        if why != self.aside:
            self.aside = why
            self.say("", f"the bad worker is set aside: {why[:140]}")

    def begin_rest(self):
        self.rest = {name: seen for name, (seen, _) in self.moved.items()}

    def rested(self, name, description):
        before, now = self.rest.get(name), self.moved.get(name, (None,))[0]
        excused = self.waits.get(name) or seconds_run_again(description) > REST_SECONDS
        self.hold("each job gets on when left alone", before != now or excused,
                  f"{name}: {now} before and after")

    def last_seen(self, name, job, saves):
        self.ended(name, job, None)
        if saves:
            newest = max((int(c.get("step", 0)) for c in job.get("checkpoints", [])),
                         default=0)
            self.hold("a job that is cancelled is saved",
                      job.get("state") == "CANCELLED" and
                      newest == int(job.get("steps_done", -1)),
                      f"{name}: {job.get('state')}, step {job.get('steps_done')}, "
                      f"saved {newest}: {job.get('reason')}")
        self.say("", f"{name} (job {job.get('id')}): {job.get('state')} "
                     f"after step {job.get('steps_done', 0)}, "
                     f"{job.get('restarts', 0)} restarts; {job.get('reason', '')[:120]}")

    def report(self):
        """The table of promises; whether all were kept."""
        print(f"\n{'promise':<44} {'checked':>8} {'broken':>7}")
        broken = collections.Counter(promise for promise, _ in self.breaks)
        for promise in self.ALL:
            print(f"{promise:<44} {self.counts[promise]:>8} {broken[promise]:>7}")
        print(f"{self.seconds['attempts that went on']} attempts went on from an earlier one; "
              f"the bad worker was {'set aside' if self.aside else 'not set aside'}")
        for promise, how in self.breaks:
            print(f"BROKEN: {promise}: {how}")
        return not self.breaks
