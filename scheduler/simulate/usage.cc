#include "scheduler/simulate/usage.h"

#include <cstdint>
#include <map>

#include "proto/base/check.h"

namespace troupe {
namespace {

constexpr double kNs = 1e-9;

}  // namespace

Usage UsageOf(const Program& program, const Lanes& lanes,
              const RankTimes& times) {
  CHECK_EQ(static_cast<size_t>(program.instructions_size()),
           times.instructions.size());
  // +1 and -1 where an instruction begins and ends, for either sort of lane.
  struct Change {
    int compute = 0;
    int network = 0;
  };
  std::map<int64_t, Change> changes;
  int64_t busy = 0;
  for (int i = 0; i < program.instructions_size(); ++i) {
    const Lane& lane = lanes[program.instructions(i).lane()];
    if (!IsDeviceLane(lane)) continue;
    const bool network = lane.kind() == Lane::TRANSFER;
    const InstructionTimes& at = times.instructions[i];
    int Change::*const which = network ? &Change::network : &Change::compute;
    changes[at.runs].*which += 1;
    changes[at.end].*which -= 1;
    if (!network) busy += at.end - at.runs;
  }
  int64_t exposed = 0;
  int64_t before = 0;
  Change active;
  for (const auto& [time, change] : changes) {
    if (active.network > 0 && active.compute == 0) exposed += time - before;
    active.network += change.network;
    active.compute += change.compute;
    before = time;
  }
  return {.compute_seconds = static_cast<double>(busy) * kNs,
          .exposed_seconds = static_cast<double>(exposed) * kNs};
}

}  // namespace troupe
