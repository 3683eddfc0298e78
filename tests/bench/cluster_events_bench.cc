// What events cost the scheduler's core where there are many workers, and jobs
// that wait for more: its state machine under the host's lock, without
// messages, store and threads.
//
//   bazel run //tests/bench:cluster_events_bench [WORKERS [QUEUED]]
//
// Prints how long an event takes, how long all take, and the longest one; below
// them the time within which workers are to be back after a restart of the
// scheduler.
//
//   bazel run //tests/bench:cluster_events_bench -- jobs [JOBS [KIBIBYTES]]
//
// Prints what jobs of this size take of the core's memory: in the queue, and
// when they have ended and had timelines.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"
#include "scheduler/cluster/host.h"
#include "tests/scheduler/cluster/fake_compiler.h"

namespace troupe {
namespace {

class CountedActions final : public ActionSink {
 public:
  void Carry(const Actions& actions) override { count += actions.size(); }
  size_t count = 0;
};

class EventsBench {
 public:
  explicit EventsBench(int workers)
      : limits_{.workers_max = workers}, cluster_(limits_, compiler_) {}

  void Queue(int jobs) {
    for (int i = 0; i < jobs; ++i) {
      // All but the first wait behind it, or for more than there are, too.
      const JobSpec spec = SpecOf(limits_.workers_max + 1 + i % 2);
      CHECK_OK(host_
                   .Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
                     return cluster.Submit(spec, CompileOutcome(), now, out);
                   })
                   .status());
    }
  }

  void RegisterAll() {
    Measure("a worker registers", limits_.workers_max,
            [&](int i, Cluster& cluster, absl::Time now, Actions& out) {
              const auto id = cluster.RegisterWorker(
                  RegisterOf(absl::StrCat("worker-", i),
                             absl::StrCat("host-", i / 8)),
                  now, out);
              CHECK_OK(id.status());
              ids_.push_back(*id);
            });
  }

  void HeartbeatsOfAll() {
    WorkerMessage message;
    message.mutable_heartbeat()->set_memory_bytes(5);
    Measure("a worker's heartbeat", limits_.workers_max,
            [&](int i, Cluster& cluster, absl::Time now, Actions& out) {
              cluster.HandleMessage(ids_[i], message, now, out);
            });
  }

  void Ticks() {
    Measure("a tick", 50,
            [&](int, Cluster& cluster, absl::Time now, Actions& out) {
              cluster.Tick(now, out);
            });
  }

  void LoseHalf() {
    Measure("a worker is lost", limits_.workers_max / 2,
            [&](int i, Cluster& cluster, absl::Time now, Actions& out) {
              cluster.Disconnected(ids_[i], "connection closed", now, out);
            });
  }

  double seconds_to_come_back() const {
    return absl::ToDoubleSeconds(limits_.adopt_max);
  }

 private:
  template <typename Event>
  void Measure(const char* name, int count, const Event& event) {
    const size_t actions_before = sink_.count;
    const absl::Time begin = host_.Now();
    absl::Time last = begin;
    absl::Duration longest;
    for (int i = 0; i < count; ++i) {
      host_.Apply([&](Cluster& cluster, absl::Time now, Actions& out) {
        event(i, cluster, now, out);
      });
      const absl::Time now = host_.Now();
      longest = std::max(longest, now - last);
      last = now;
    }
    const double seconds = absl::ToDoubleSeconds(last - begin);
    std::printf(
        "%-22s %8.1f us each, %7.3f s for %d, at most %.1f ms; "
        "%zu actions\n",
        name, seconds / count * 1e6, seconds, count,
        absl::ToDoubleMilliseconds(longest), sink_.count - actions_before);
  }

  const Limits limits_;
  const FakeCompiler compiler_;
  const RealClock clock_;
  CountedActions sink_;
  Cluster cluster_;
  ClusterHost host_{cluster_, clock_, sink_};
  std::vector<WorkerId> ids_;
};

double ResidentMb() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return static_cast<double>(resident * sysconf(_SC_PAGESIZE)) / 1e6;
}

// The table of the jobs alone. Its actions are dropped, as when they are
// carried out.
void JobsBench(int jobs, int kibibytes) {
  JobSpec spec = SpecOf(1);
  // Of many strings, as the parameter groups of a large job are.
  while (static_cast<int>(spec.ByteSizeLong()) < kibibytes << 10) {
    spec.mutable_optimizer()->add_groups()->add_match(std::string(60, 'x'));
  }
  Timeline trace;
  RankTimeline& rank = *trace.add_ranks();
  while (trace.SpaceUsedLong() < Limits().trace_bytes_per_job_max / 4) {
    rank.add_spans()->set_unit(1);
  }
  JobTable table({.jobs_queued_max = jobs});
  const absl::Time now = absl::Now();
  const double before = ResidentMb();
  const auto print = [&](const char* when) {
    const double mb = ResidentMb() - before;
    std::printf("%d jobs of %d KiB, %s: %.1f MB, %.1f KB each\n", jobs,
                kibibytes, when, mb, mb * 1e3 / jobs);
  };
  std::vector<Job*> all;
  for (int i = 0; i < jobs; ++i) {
    Actions actions;
    all.push_back(&table.Add(spec, 1, now, actions));
  }
  print("queued");
  for (Job* const job : all) {
    Actions actions;
    table.SetState(*job, CANCELLED, "", now, actions);
  }
  print("ended");
  for (Job* const job : all) {
    table.SetPredicted(*job, std::make_shared<const Timeline>(trace));
    for (int step = 10; step <= 60; step += 10) {
      trace.set_step(step);
      table.AddTrace(*job, trace);
    }
  }
  print("ended, each of which had more than 4 MiB of timelines");
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "jobs") {
    troupe::JobsBench(argc > 2 ? std::atoi(argv[2]) : 1000,
                      argc > 3 ? std::atoi(argv[3]) : 64);
    return 0;
  }
  const int workers = argc > 1 ? std::atoi(argv[1]) : 16000;
  const int queued = argc > 2 ? std::atoi(argv[2]) : 50;
  troupe::EventsBench bench(workers);
  std::printf("%d workers, %d jobs that wait for more\n", workers, queued);
  bench.Queue(queued);
  bench.RegisterAll();
  bench.HeartbeatsOfAll();
  bench.Ticks();
  bench.LoseHalf();
  std::printf("workers are given %.1f s to come back after a restart\n",
              bench.seconds_to_come_back());
  return 0;
}
