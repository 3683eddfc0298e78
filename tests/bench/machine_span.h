// How the machine was while a benchmark ran, for its last line: a figure that
// was taken beside another program, or on cores that the hypervisor gave to
// others, is not to be believed.
//
//   MachineSpan span(threads);
//   ... measure; span.Probe() where nothing else runs ...
//   std::printf("%s\n", span.Line().c_str());
#ifndef TROUPE_TESTS_BENCH_MACHINE_SPAN_H_
#define TROUPE_TESTS_BENCH_MACHINE_SPAN_H_

#include <string>
#include <vector>

#include "proto/base/clock.h"
#include "worker/calibrate/machine_times.h"

namespace troupe {

class MachineSpan {
 public:
  // For a benchmark that keeps as many threads busy; 0: all cores.
  explicit MachineSpan(int threads);

  // Some hundred microseconds; best right after work of all threads.
  void Probe();

  // "machine: 12 % slower than at calibration (8 % stolen, others use 3 %)", of
  // the time since construction. What this process used, and children that have
  // ended, is its own, and so are `own_seconds`. Probes once more. Without a
  // calibration of a worker with as many threads it says only what others took.
  std::string Line(double own_seconds = 0);

 private:
  const RealClock clock_;
  const int threads_;
  const MachineTimes start_;
  std::vector<double> probes_us_;
};

}  // namespace troupe

#endif  // TROUPE_TESTS_BENCH_MACHINE_SPAN_H_
