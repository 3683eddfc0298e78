// How the time of the machine's cores was spent, as the kernel counts it: by
// this process, by all, and by the hypervisor, which may run other machines
// meanwhile.
//
//   const MachineTimes start = ReadMachineTimes();
//   ... measure ...
//   const MachineReading reading = SharesBetween(start, ReadMachineTimes());
#ifndef TROUPE_WORKER_CALIBRATE_MACHINE_TIMES_H_
#define TROUPE_WORKER_CALIBRATE_MACHINE_TIMES_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "proto/cluster.pb.h"

namespace troupe {

// Seconds, of the cores that this process may run on. All since some time in
// the past; only differences say something.
struct MachineTimes {
  int cores = 0;    // 0: /proc/stat cannot be read
  double wall = 0;  // of one clock
  double busy = 0;  // of the cores, by any process; not what was stolen
  double stolen = 0;
  double own = 0;  // of this process, and its children that have ended
};
MachineTimes ReadMachineTimes();

// All shares from `start` to `end`; none where less than a fifth of a second
// lies between, which the kernel's ticks do not resolve, or nothing was read.
MachineReading SharesBetween(const MachineTimes& start,
                             const MachineTimes& end);

// What others used and the hypervisor kept.
double LostShare(const MachineReading& reading);

// Cores, busy and stolen seconds in the text of /proc/stat: of its lines
// "cpuN" of these cores, in ascending order. Idle, and waiting for disks, is
// not busy.
MachineTimes ParseProcStat(absl::string_view proc_stat,
                           const std::vector<int>& cores,
                           double ticks_per_second);

}  // namespace troupe

#endif  // TROUPE_WORKER_CALIBRATE_MACHINE_TIMES_H_
