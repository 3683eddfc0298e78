// A cluster in a test's hands: a clock that the test turns, the messages of
// workers, and what was asked to be done. What is to be compiled is compiled at
// once, unless the test takes that into its own hands too.
#ifndef TROUPE_TESTS_SCHEDULER_CLUSTER_HARNESS_H_
#define TROUPE_TESTS_SCHEDULER_CLUSTER_HARNESS_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "scheduler/cluster/cluster.h"
#include "tests/scheduler/cluster/fake_compiler.h"

namespace troupe {

struct Harness {
  explicit Harness(const Limits& limits = {}) : cluster(limits, compiler) {}

  WorkerId Join(const std::string& name, const std::string& host = "h") {
    auto id = cluster.RegisterWorker(RegisterOf(name, host), now, actions);
    CHECK_OK(id.status());
    Compile();
    return *id;
  }
  // With so much memory; others have 1000 bytes.
  WorkerId JoinWith(const std::string& name, int64_t bytes) {
    Register request = RegisterOf(name);
    request.mutable_worker()->mutable_budgets(0)->set_bytes(bytes);
    auto id = cluster.RegisterWorker(request, now, actions);
    CHECK_OK(id.status());
    Compile();
    return *id;
  }
  std::vector<WorkerId> JoinMany(int count) {
    std::vector<WorkerId> ids;
    for (int i = 0; i < count; ++i) ids.push_back(Join(absl::StrCat("w", i)));
    return ids;
  }
  // As a client's submission goes: both halves.
  absl::StatusOr<JobId> TrySubmit(const JobSpec& spec);
  JobId Submit(const JobSpec& spec) {
    auto id = TrySubmit(spec);
    CHECK_OK(id.status());
    return *id;
  }
  // Carries out what the cluster asks to be compiled and stored, until it asks
  // no more.
  void Compile();
  void Compiled(const CompileJob& asked);
  void EndsTooLate(const CompileJob& asked);
  // What the store answers.
  void Stored(const AwaitStored& start,
              const absl::Status& stored = absl::OkStatus());
  const Job& job(JobId id) const { return **cluster.FindJob(id); }
  const JobStatus& status(JobId id) const { return job(id).status; }
  const WorkerStatus& worker(WorkerId id) const {
    return cluster.workers().Find(id)->status;
  }
  void Tick(absl::Duration by) {
    now += by;
    cluster.Tick(now, actions);
    Compile();
  }
  void Disconnect(WorkerId worker, const std::string& reason) {
    cluster.Disconnected(worker, reason, now, actions);
    Compile();
  }
  void Send(WorkerId from, const WorkerMessage& message) {
    cluster.HandleMessage(from, message, now, actions);
    Compile();
  }
  // What was asked for since then is forgotten.
  void ClearActions() {
    actions.clear();
    answered_actions = 0;
  }
  // Of a worker whose rank, if it has one, is between programs.
  void Heartbeat(WorkerId from);
  // Time passes while these workers keep their leases.
  void Pass(absl::Duration time, const std::vector<WorkerId>& alive) {
    for (; time > absl::ZeroDuration(); time -= absl::Seconds(1)) {
      for (const WorkerId id : alive) Heartbeat(id);
      Tick(absl::Seconds(1));
    }
  }

  RankRef Ref(JobId id, int rank) const {
    RankRef ref;
    ref.set_job(id.value());
    ref.set_attempt(job(id).attempt);
    ref.set_rank(rank);
    return ref;
  }
  void Ready(JobId id, int rank, WorkerId from, int64_t first_step = 1) {
    WorkerMessage message;
    *message.mutable_rank_ready()->mutable_ref() = Ref(id, rank);
    message.mutable_rank_ready()->set_first_step(first_step);
    Send(from, message);
  }
  void Step(JobId id, int rank, WorkerId from, int64_t step);
  struct End {
    bool ok = true;
    std::string error;
    int missing_rank = -1;
    int64_t step = 10;
    bool stopped = false;     // as it was told to
    bool of_machine = false;  // the cause lies in the worker
  };
  void Ended(JobId id, int rank, WorkerId from, const End& end);
  // Ranks 0.. on these workers, in order, all ready.
  JobId Running(const std::vector<WorkerId>& on) {
    const JobId id = Submit(SpecOf(static_cast<int>(on.size())));
    for (size_t r = 0; r < on.size(); ++r) Ready(id, r, on[r]);
    CHECK_EQ(status(id).state(), RUNNING);
    return id;
  }

  // The messages to this worker since the last call, in order.
  std::vector<SchedulerMessage> Sent(WorkerId to) const;
  template <typename T>
  std::vector<T> All() const {
    std::vector<T> all;
    for (const Action& action : actions) {
      if (const T* one = std::get_if<T>(&action)) all.push_back(*one);
    }
    return all;
  }

  FakeCompiler compiler;
  Cluster cluster;
  absl::Time now = absl::FromUnixSeconds(1'000'000);
  Actions actions;
  bool by_hand = false;         // the test compiles, with Compiled
  bool stored_by_hand = false;  // and answers the store, with Stored
  size_t answered_actions = 0;  // as far as Compile has come
};

}  // namespace troupe

#endif  // TROUPE_TESTS_SCHEDULER_CLUSTER_HARNESS_H_
