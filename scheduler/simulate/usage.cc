#include "scheduler/simulate/usage.h"

#include <cstdint>
#include <map>

#include "proto/base/check.h"
#include "proto/plan/operand.h"

namespace troupe {
namespace {

constexpr double kSecondsPerNs = 1e-9;

}  // namespace

Usage UsageOf(const Program& program, const Lanes& lanes,
              const RankTimes& times) {
  CHECK_EQ(static_cast<size_t>(program.instructions_size()),
           times.instructions.size());
  // +1 and -1 where an instruction begins and ends, for each sort of work.
  struct Change {
    int compute = 0;
    int network = 0;
    int tiers = 0;
  };
  std::map<int64_t, Change> changes;
  int64_t busy = 0;
  for (int i = 0; i < program.instructions_size(); ++i) {
    const Instruction& instruction = program.instructions(i);
    const Lane::Kind lane = KindOfLane(lanes, instruction.lane());
    const bool tiers = IsMove(instruction.kind()) || lane == Lane::HOST;
    if (!tiers && lane == Lane::IO) continue;
    if (instruction.kind() == Instruction::LOAD_BATCH) continue;
    const InstructionTimes& at = times.instructions[i];
    int Change::*const which = tiers                    ? &Change::tiers
                               : lane == Lane::TRANSFER ? &Change::network
                                                        : &Change::compute;
    changes[at.runs].*which += 1;
    changes[at.end].*which -= 1;
    if (lane == Lane::COMPUTE) busy += at.end - at.runs;
  }
  int64_t exposed = 0;
  int64_t moving = 0;
  int64_t before = 0;
  Change active;
  for (const auto& [time, change] : changes) {
    if (active.compute == 0) {
      if (active.network > 0) {
        exposed += time - before;
      } else if (active.tiers > 0) {
        moving += time - before;
      }
    }
    active.network += change.network;
    active.compute += change.compute;
    active.tiers += change.tiers;
    before = time;
  }
  return {.compute_seconds = static_cast<double>(busy) * kSecondsPerNs,
          .exposed_seconds = static_cast<double>(exposed) * kSecondsPerNs,
          .tier_seconds = static_cast<double>(moving) * kSecondsPerNs};
}

}  // namespace troupe
