// One scheduler and a thousand workers: how much processor and memory it takes,
// how long clients wait, how soon a job on all workers starts.
//
//   bazel run //tests/bench:scheduler_scale_bench [WORKERS [STEPS [QUEUED
//   [FLOODING]]]]
//
// A step a second; for half as many steps again FLOODING clients ask without
// pause. The scheduler is the real program in a process of its own;
// the workers are real sessions without training (scheduler_scale/fleet.h), all
// of them in this process, on the same cores.
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/bench/machine_span.h"
#include "tests/bench/scheduler_scale/scenario.h"

int main(int argc, char** argv) {
  rlimit files;  // a worker is a connection
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
  }
  troupe::ScenarioOptions options;
  if (argc > 1) options.workers = std::atoi(argv[1]);
  if (argc > 2) options.steps = std::atoi(argv[2]);
  if (argc > 3) options.queued = std::atoi(argv[3]);
  if (argc > 4) options.flooding = std::atoi(argv[4]);
  if (argc > 5) options.scheduler = argv[5];  // another build of it
  options.state = std::filesystem::temp_directory_path() /
                  absl::StrCat("scheduler-scale-", getpid());
  std::filesystem::create_directories(options.state);
  troupe::MachineSpan machine(0);
  const troupe::ScenarioReport report = troupe::RunScenario(options);
  std::fputs(troupe::ReportText(options, report).c_str(), stdout);
  std::printf("%s\n", machine.Line().c_str());
  std::filesystem::remove_all(options.state);
  return 0;
}
