#include "scheduler/simulate/tier_rates.h"

#include <algorithm>
#include <set>

#include "proto/plan/find_program.h"
#include "proto/plan/memory.h"
#include "proto/plan/operand.h"
#include "scheduler/simulate/rates.h"

namespace troupe {
namespace {

// A disk that one may meet, where nothing measured it.
constexpr double kDiskBytesPerSecond = 5e8;
constexpr double kDiskLatencyUs = 100;

double DiskBytesPerSecond(double measured) {
  return measured > 0 ? measured : kDiskBytesPerSecond;
}

// Ranks of a host share the disk's bandwidth; each waits for its own moves.
DiskRate SharedBy(int ranks, double bytes_per_second, double latency_us) {
  return {
      .bytes_per_second = DiskBytesPerSecond(bytes_per_second) / ranks,
      .latency_seconds = 1e-6 * (latency_us > 0 ? latency_us : kDiskLatencyUs)};
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
          .nvme_reads =
              SharedBy(company.ranks, calibration.nvme_read_bytes_per_second(),
                       calibration.nvme_read_latency_us()),
          .nvme_writes =
              SharedBy(company.ranks, calibration.nvme_write_bytes_per_second(),
                       calibration.nvme_write_latency_us()),
          .checkpoint = DiskBytesPerSecond(calibration.nvme_bytes_per_second()),
          .optimizer = OptimizerRate(worker, calibration, company)};
}

bool UsesLowerTiers(const Plan& plan) {
  return std::any_of(plan.roles().begin(), plan.roles().end(),
                     [](const Role& role) {
                       return BytesIn(role, HOST) + BytesIn(role, NVME) > 0;
                     });
}

bool WorksBesideDevice(const Lanes& lanes, const Instruction& instruction) {
  const Lane::Kind kind = KindOfLane(lanes, instruction.lane());
  return kind == Lane::HOST ||
         (kind == Lane::TRANSFER && IsMove(instruction.kind()));
}

int LanesOnCores(const Plan& plan) {
  size_t most = 0;  // beside the device's own
  for (const Role& role : plan.roles()) {
    const Program* const step = StepProgram(role);
    if (step == nullptr) continue;
    std::set<int> lanes;
    for (const Instruction& instruction : step->instructions()) {
      if (WorksBesideDevice(plan.lanes(), instruction)) {
        lanes.insert(instruction.lane());
      }
    }
    most = std::max(most, lanes.size());
  }
  return 1 + static_cast<int>(most);
}

}  // namespace troupe
