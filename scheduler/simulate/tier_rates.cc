#include "scheduler/simulate/tier_rates.h"

#include <algorithm>

#include "proto/plan/find_program.h"
#include "proto/plan/lanes.h"
#include "proto/plan/memory.h"
#include "scheduler/simulate/rates.h"

namespace troupe {
namespace {

// A disk that one may meet, where nothing measured it.
constexpr double kDiskBytesPerSecond = 5e8;

double DiskRate(double measured) {
  return measured > 0 ? measured : kDiskBytesPerSecond;
}

// On a GPU worker, which measures its device, that of its share of the cores.
double OptimizerRate(const WorkerDescription& worker,
                     const Calibration& calibration,
                     const TierCompany& company) {
  if (!worker.has_gpu()) {
    return calibration.optimizer_bytes_per_second() * company.scale;
  }
  const int cores = std::max(1, worker.host_cores() / company.ranks);
  return DefaultCalibration().optimizer_bytes_per_second() * cores;
}

}  // namespace

TierRates TierRatesOf(const WorkerDescription& worker,
                      const Calibration& calibration,
                      const TierCompany& company) {
  const double memory = calibration.memory_bytes_per_second() * company.scale;
  const double copies = calibration.host_bytes_per_second();
  return {.copies = copies > 0 ? copies : memory / 2,
          .nvme_reads = DiskRate(calibration.nvme_read_bytes_per_second()) /
                        company.ranks,
          .nvme_writes = DiskRate(calibration.nvme_write_bytes_per_second()) /
                         company.ranks,
          .checkpoint = DiskRate(calibration.nvme_bytes_per_second()),
          .optimizer = OptimizerRate(worker, calibration, company)};
}

bool UsesLowerTiers(const Plan& plan) {
  return std::any_of(plan.roles().begin(), plan.roles().end(),
                     [](const Role& role) {
                       return BytesIn(role, HOST) + BytesIn(role, NVME) > 0;
                     });
}

bool WorksOnHost(const Plan& plan) {
  for (const Role& role : plan.roles()) {
    const Program* const train = FindProgram(role, Program::TRAIN);
    if (train == nullptr) continue;
    for (const Instruction& instruction : train->instructions()) {
      if (KindOfLane(plan.lanes(), instruction.lane()) == Lane::HOST) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace troupe
