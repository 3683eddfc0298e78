// A harness (harness.h) whose scheduler is killed: another one starts in its
// place from what the store has, and workers come back to it.
#ifndef TROUPE_TESTS_SCHEDULER_CLUSTER_RESTART_HARNESS_H_
#define TROUPE_TESTS_SCHEDULER_CLUSTER_RESTART_HARNESS_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/base/check.h"
#include "scheduler/cluster/limits.h"
#include "tests/scheduler/cluster/harness.h"

namespace troupe {

// What the store has after all that the cluster asked for.
inline std::vector<StoredJob> StoredBy(const Harness& h) {
  std::map<JobId, StoredJob> jobs;
  for (const Action& action : h.actions) {
    if (const auto* job = std::get_if<PersistJob>(&action)) {
      jobs[JobId(job->row->status.id())].row = *job->row;
    } else if (const auto* handed = std::get_if<PersistHandOut>(&action)) {
      jobs[handed->job].hand_out = handed->hand_out;
    } else if (const auto* step = std::get_if<PersistStep>(&action)) {
      jobs[step->job].steps.push_back(step->step);
    } else if (const auto* event = std::get_if<PersistEvent>(&action)) {
      jobs[event->job].events.push_back(event->event);
    }
  }
  std::vector<StoredJob> stored;
  for (auto& [id, job] : jobs) stored.push_back(std::move(job));
  return stored;
}

// The scheduler of `before` is killed, and another one started in its place.
template <typename AnyHarness>
std::unique_ptr<AnyHarness> Restarted(const AnyHarness& before) {
  auto after = std::make_unique<AnyHarness>();
  after->now = before.now + absl::Seconds(100);
  after->cluster.Restore(StoredBy(before), after->now, after->actions);
  after->Compile();
  return after;
}

// When a worker that has not come back is lost.
inline absl::Duration AfterAdoptMax() {
  return Limits().adopt_max + absl::Seconds(1);
}

inline HeldRank HeldOf(JobId id, int rank, int64_t first_step = 1,
                       int64_t step = 0, int32_t attempt = 1) {
  HeldRank held;
  held.mutable_ref()->set_job(id.value());
  held.mutable_ref()->set_attempt(attempt);
  held.mutable_ref()->set_rank(rank);
  held.set_fingerprint("0123456789abcdef");
  held.set_first_step(first_step);
  held.set_step(step);
  return held;
}

inline WorkerId ComeBack(Harness& h, const std::string& name,
                         const HeldRank& held) {
  Register request = RegisterOf(name);
  *request.mutable_held() = held;
  auto id = h.cluster.RegisterWorker(request, h.now, h.actions);
  CHECK_OK(id.status());
  h.Compile();
  return *id;
}

// Why it was told to give its rank up; empty: it was not.
inline std::string ForgottenFor(const Harness& h, WorkerId to) {
  for (const SchedulerMessage& message : h.Sent(to)) {
    if (message.stop().forgotten()) return message.stop().reason();
  }
  return "";
}

}  // namespace troupe

#endif  // TROUPE_TESTS_SCHEDULER_CLUSTER_RESTART_HARNESS_H_
