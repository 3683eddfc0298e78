// How fast a rank moves between tiers of memory, and works in those below its
// device.
#ifndef TROUPE_SCHEDULER_SIMULATE_TIER_RATES_H_
#define TROUPE_SCHEDULER_SIMULATE_TIER_RATES_H_

#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

// Bytes a second.
struct TierRates {
  double copies = 0;      // between device and host, either way
  double nvme_reads = 0;  // of the rank's part of the host's disk
  double nvme_writes = 0;
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

// Whether ranks compute on the cores of their hosts beside their devices.
bool WorksOnHost(const Plan& plan);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_TIER_RATES_H_
