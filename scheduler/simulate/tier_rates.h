// How fast a rank moves between tiers of memory, and works in those below its
// device.
#ifndef TROUPE_SCHEDULER_SIMULATE_TIER_RATES_H_
#define TROUPE_SCHEDULER_SIMULATE_TIER_RATES_H_

#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"
#include "proto/plan/lanes.h"
#include "proto/program.pb.h"

namespace troupe {

// What a disk takes to move bytes one way: a latency, whatever their number is,
// and their time.
struct DiskRate {
  double bytes_per_second = 0;  // of the rank's part of the host's disk
  double latency_seconds = 0;

  double SecondsOf(double bytes) const {
    return latency_seconds + bytes / bytes_per_second;
  }
};

// Bytes a second.
struct TierRates {
  double copies = 0;  // between device and host, either way
  DiskRate nvme_reads;
  DiskRate nvme_writes;
  double checkpoint = 0;  // to the disk that checkpoints go to
  double optimizer = 0;   // on the host's cores, as Calibration counts it
};
// `calibration`: the worker's, completed (rates.h); `scale`: from the threads
// that it was measured with to those that the worker has. `ranks`: of the plan,
// on the worker's host.
struct TierCompany {
  double scale = 1;
  int ranks = 1;
};
TierRates TierRatesOf(const WorkerDescription& worker,
                      const Calibration& calibration,
                      const TierCompany& company);

// Whether something of the plan lies below the device.
bool UsesLowerTiers(const Plan& plan);

// Whether an instruction keeps the cores of its host busy, and not its device,
// where that is a GPU: the optimizer of the host, copies between tiers of
// memory. On a worker without one they share the cores with what it computes.
bool WorksBesideDevice(const Lanes& lanes, const Instruction& instruction);

// How many lanes of a rank keep the cores of a worker without a GPU busy at
// once, at most.
int LanesOnCores(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_TIER_RATES_H_
