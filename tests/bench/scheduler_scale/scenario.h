// A day of a large cluster in a minute: workers register and idle; one job
// takes all of them, is planned, handed out, steps, and is cancelled; clients
// ask all the while, and some of them for a while without pause. The scheduler
// is the real program in a process of its own.
#ifndef TROUPE_TESTS_BENCH_SCHEDULER_SCALE_SCENARIO_H_
#define TROUPE_TESTS_BENCH_SCHEDULER_SCALE_SCENARIO_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/bench/scheduler_scale/latencies.h"

namespace troupe {

struct ScenarioOptions {
  std::string scheduler = "scheduler/troupe-scheduler";
  std::string state;  // an empty directory
  int workers = 1000;
  int micro_batches = 2;  // of a rank in a step
  int steps = 30;
  // Clients that ask without pause during as many steps as without them.
  int flooding = 100;
  int queued = 0;  // jobs that wait, for more workers than there are
  absl::Duration step = absl::Seconds(1);
  absl::Duration idle = absl::Seconds(10);
};

struct ScenarioReport {
  double register_seconds = 0;  // all workers
  // From the call of SubmitJob ...
  double submitted_seconds = 0;   // ... to its answer,
  double assigned_seconds = 0;    // to the last worker's assignment,
  double first_step_seconds = 0;  // to the first step's record at a watcher
  double met_seconds = 0;         // to the last rank that knows its peers
  int64_t hand_out_bytes = 0;
  // Moved through the rendezvous by the first rank, and by another at most.
  int64_t store_bytes_first = 0;
  int64_t store_bytes_other = 0;
  double cancel_seconds = 0;  // from CancelJob until the job has ended
  // Of one core.
  double cpu_idle = 0;           // heartbeats only
  double cpu_running = 0;        // and a step report of every rank each step
  double cpu_flooded = 0;        // ... beside clients that ask without pause,
  double flood_per_second = 0;   // which get this number of answers,
  int64_t flood_refused = 0;     // or none
  double cpu_start_seconds = 0;  // spent from submission to the first step
  int64_t resident_bytes_idle = 0;
  int64_t resident_bytes_running = 0;
  int64_t resident_bytes_max = 0;
  int threads = 0;
  int workers_lost = 0;
  int64_t steps_seen = 0;  // records that the watcher got
  std::vector<Latencies::Row> latencies;
  std::string end;  // the job's last state
  int exit_code = -1;
};

// CHECKs what must not fail: RPCs are answered, every worker gets a rank.
ScenarioReport RunScenario(const ScenarioOptions& options);

std::string ReportText(const ScenarioOptions& options,
                       const ScenarioReport& report);

}  // namespace troupe

#endif  // TROUPE_TESTS_BENCH_SCHEDULER_SCALE_SCENARIO_H_
