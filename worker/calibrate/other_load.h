// How much of the machine others use while we measure it: a rate taken beside a
// compiler is not the machine's.
//
//   const OtherLoad load;
//   ... measure ...
//   if (load.Share() > 0.2) ...
#ifndef TROUPE_WORKER_CALIBRATE_OTHER_LOAD_H_
#define TROUPE_WORKER_CALIBRATE_OTHER_LOAD_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace troupe {

class OtherLoad {
 public:
  OtherLoad();

  // The part of all cores' time since construction that other processes used,
  // or the hypervisor kept: 0 to 1. 0 where /proc/stat cannot be read.
  double Share() const;

 private:
  struct Times {
    double wall_seconds = 0;
    double busy_seconds = 0;  // of all cores, whoever used them
    double own_seconds = 0;   // processor time of this process
  };
  static Times Now();

  const Times start_;
};

// Busy ticks of all cores in the text of /proc/stat: all of the line "cpu" but
// idle and waiting for disks; 0 where there is no such line.
int64_t BusyTicks(absl::string_view proc_stat);

}  // namespace troupe

#endif  // TROUPE_WORKER_CALIBRATE_OTHER_LOAD_H_
