// The scheduler's bounds, in one place: every queue, table and wait of the
// cluster has one, so that no client and no worker can make it grow without
// end.
#ifndef TROUPE_SCHEDULER_CLUSTER_LIMITS_H_
#define TROUPE_SCHEDULER_CLUSTER_LIMITS_H_

#include <cstdint>

#include "absl/time/time.h"
#include "proto/come_back.h"
#include "proto/plan/plan_limits.h"

namespace troupe {

struct Limits {
  // Time.
  absl::Duration heartbeat = absl::Seconds(1);
  absl::Duration lease = absl::Seconds(5);
  // Ticks come more often than this. What lies between two of them beyond it is
  // time in which the scheduler did not run: no wait counts it.
  absl::Duration tick_max = absl::Seconds(1);
  // After its own start the scheduler waits this long for the workers of jobs
  // that ran: they notice at once that the one before is gone, and come back
  // within ComeBackMax. A lease more is for a machine that is busy: 15 s.
  // What the scheduler takes to load and to listen does not count, but for
  // tick_max.
  absl::Duration adopt_max = ComeBackMax() + lease;
  // Between two messages that say what is stored of what a rank has reported.
  absl::Duration stored_every = absl::Seconds(1);
  // From the assignment, or the last bytes that a rank has read, until every
  // rank is ready.
  absl::Duration start_max = absl::Minutes(5);
  // A running job makes progress (a step, bytes of a checkpoint) within the
  // greater of hang_min and hang_steps predicted steps, or counts as hung.
  absl::Duration hang_min = absl::Seconds(60);
  double hang_steps = 20;
  // A step is late after this long (step_deadline.h); which rank waits for
  // which is looked up again and again, and said again, where others are to
  // blame.
  absl::Duration late_min = absl::Seconds(3);
  absl::Duration late_first_min = absl::Seconds(10);
  double late_steps = 4;
  absl::Duration late_look_every = absl::Seconds(1);
  absl::Duration late_say_every = absl::Seconds(5);
  // The first job of the queue holds back those behind it while it is being
  // planned, but no longer than this: then they may start before it, once.
  absl::Duration planning_patience = absl::Seconds(2);
  // Between two questions whether the store can be written again.
  absl::Duration store_retry = absl::Seconds(1);
  // A failed job is declared so once its ranks have let go, and after this
  // long at the latest; its workers are free only when they let go.
  absl::Duration fail_grace = absl::Seconds(2);
  // A worker that does not let go of a stopped rank for this long is lost.
  absl::Duration stop_max = absl::Seconds(30);
  // A job that recovers is given up after this number of attempts in a row that
  // ended without a new step: by themselves, or with the loss of a worker.
  int failures_in_a_step_max = 2;
  int losses_in_a_step_max = 10;
  // A worker on which this number of jobs failed, and not elsewhere, is set
  // aside.
  int local_failures_max = 3;
  // But a rank that has run for so long has done well, however it ends then:
  // hosts are taken away and processes killed now and then.
  absl::Duration does_well_after = absl::Minutes(10);
  // A job whose start failed for a cause of its workers is begun so often in
  // all, each time without those.
  int starts_max = 3;
  // Between two pieces of a generated text; a worker that does not let go of
  // one that was stopped is lost after stop_max.
  absl::Duration generate_max = absl::Minutes(2);
  // Deadline of a collective of workers that write a text together: shorter, so
  // that one of them says which did not come.
  absl::Duration text_collective_max = absl::Seconds(90);
  // Deadline of a collective: the greater of collective_min and hang_steps
  // predicted steps.
  absl::Duration collective_min = absl::Seconds(30);

  // No worker has come or gone for this long before a job with `elastic` goes
  // on with fewer, or more: a worker that is started again is soon back, and of
  // several that come all are counted.
  absl::Duration elastic_calm = absl::Seconds(2);
  // For copies of states to become a checkpoint; then the job goes on from the
  // one before.
  absl::Duration save_copies_max = absl::Minutes(30);

  // A job has waited for this long for workers in the places of lost ones
  // before it gives its own to others (policy/who_gives_way.h): longer than it
  // takes to start a worker again.
  absl::Duration give_way_after = absl::Seconds(30);

  // Measurements of links between hosts (link_measurements.h). How long one may
  // take, how many are under way at once, how many workers of a host take part,
  // and what each of them sends.
  absl::Duration measure_max = absl::Seconds(5);
  int measurements_max = 4;
  size_t measure_workers_max = 8;
  int64_t measure_bytes_max = 64 << 20;
  // After the first one of a host that failed, each further one twice as long,
  // up to the second, which is also for a host that has other workers than it
  // had; and after one that did well.
  absl::Duration measure_soon_again = absl::Seconds(30);
  absl::Duration measure_again = absl::Minutes(10);
  absl::Duration measure_anew = absl::Hours(24);
  // Where no worker has come or gone, nor begun or ended anything.
  absl::Duration measure_look_every = absl::Seconds(10);

  // Questions whether a job's files are there (file_checks.h): how long one
  // waits, how many are open at once, and how many workers each goes to.
  absl::Duration file_check_max = absl::Seconds(5);
  size_t file_checks_max = 64;
  size_t file_check_workers_max = 3;

  // Counts.
  int workers_max = kWorkersMax;
  int gone_workers_kept = 64;  // lost and left ones, for people to see
  int jobs_queued_max = 1000;  // one client has a share (client_share.h)
  int ended_jobs_kept = 1000;  // older ones are forgotten, in the store too
  // Of a job, the newest; of older ones the store keeps some, and people see
  // the curves of all (step_series.h).
  int64_t steps_per_job_max = 100'000;
  int64_t steps_kept_max = 2'000'000;  // over all jobs
  int64_t thinned_steps_max() const {  // of a job, in the store
    return steps_per_job_max / 4 + 1;
  }
  int64_t steps_loaded_max() const {  // of a job; with those not thinned yet
    return steps_per_job_max + 2 * thinned_steps_max();
  }
  int events_per_job_max = 1000;
  int late_events_max = 100;  // of one attempt
  int checkpoints_per_job_max = 1000;
  int64_t trace_every = 10;  // steps
  // Of a job: as many of its newest traces as fit, the last one in any case.
  int64_t trace_bytes_per_job_max = 4 << 20;
  // Over all jobs, with the predicted ones: beyond it the oldest ended jobs
  // have none.
  int64_t timeline_bytes_kept_max = 256 << 20;

  // Rendezvous, of one attempt of a job.
  int64_t store_keys_max = 200'000;
  int64_t store_bytes_max = 64 << 20;
  int64_t store_value_bytes_max = 1 << 20;

  // Of a generated text.
  int64_t prompt_bytes_max = 1 << 20;
  int64_t new_tokens_max = 1 << 16;

  // Texts that come from workers (proto/base/one_line.h).
  size_t worker_name_bytes_max = 100;
  size_t worker_bytes_max = 1 << 20;  // of all that it says of itself
  size_t reason_bytes_max = 4096;     // of a reason, an error, an event
  int warnings_max = 16;              // of an attempt, from all its ranks
  int notices_max = 32;               // the same
};

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_CLUSTER_LIMITS_H_
