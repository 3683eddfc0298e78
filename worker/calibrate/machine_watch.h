// What a worker says of its machine while it works: shares of the cores' time
// over the last ten seconds, and the median of the last probes. Probes run
// where no kernel of this worker does, between steps, and take a thousandth of
// the time at most.
//
//   MachineWatch watch(SensorsOf(clock, /*gpu=*/false));
//   watch.Probe();                      // between steps, as often as there are
//   heartbeat = watch.Read();
#ifndef TROUPE_WORKER_CALIBRATE_MACHINE_WATCH_H_
#define TROUPE_WORKER_CALIBRATE_MACHINE_WATCH_H_

#include <deque>
#include <functional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/base/clock.h"
#include "proto/cluster.pb.h"
#include "worker/calibrate/machine_times.h"

namespace troupe {

struct MachineSensors {
  std::function<double()> wall_seconds;  // of the same clock as times().wall
  std::function<MachineTimes()> times;
  std::function<double()> probe_us;
};
// Those of this machine; the clock is borrowed. On a GPU there is nothing to
// probe with: it knows shares only.
MachineSensors SensorsOf(const Clock& clock, bool gpu);

// Thread-safe; probes run on the caller's thread, outside of the lock.
class MachineWatch {
 public:
  // Looks at the times, and probes a few times.
  explicit MachineWatch(MachineSensors sensors);

  // As many probes as the time since the last ones allows: often none.
  void Probe();

  // Looks at the times again.
  MachineReading Read();

 private:
  struct ProbeResult {
    double wall = 0;
    double us = 0;
  };
  void RunProbes(int count);

  const MachineSensors sensors_;
  absl::Mutex mutex_;
  std::deque<MachineTimes> looks_ ABSL_GUARDED_BY(mutex_);
  std::deque<ProbeResult> probes_ ABSL_GUARDED_BY(mutex_);
  double probed_ ABSL_GUARDED_BY(mutex_) = 0;      // wall: the last ones' end
  double probe_cost_ ABSL_GUARDED_BY(mutex_) = 0;  // seconds of each of them
};

}  // namespace troupe

#endif  // TROUPE_WORKER_CALIBRATE_MACHINE_WATCH_H_
