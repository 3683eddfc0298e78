#include "scheduler/passes/tier_uses.h"

#include <map>

#include "absl/types/optional.h"
#include "proto/plan/buffer_kind.h"

namespace troupe {
namespace {

bool UsesOneUnit(const Instruction& a, const Instruction& b) {
  return a.unit() == b.unit() && a.micro_batch() == b.micro_batch() &&
         a.ahead() == b.ahead();
}

}  // namespace

TierUses::TierUses(const Program& program, const Lanes& lanes)
    : uses_(program.buffers_size()) {
  std::map<Tier, const Instruction*> last;
  std::map<Tier, int> count;
  for (int i = 0; i < program.instructions_size(); ++i) {
    const Instruction& instruction = program.instructions(i);
    const Lane::Kind lane = KindOfLane(lanes, instruction.lane());
    const absl::optional<Tier> tier = TierOfOperands(lane);
    if (lane == Lane::COMPUTE || lane == Lane::HOST) {
      const Instruction*& before = last[*tier];
      if (before == nullptr || !UsesOneUnit(*before, instruction)) {
        ++count[*tier];
      }
      before = &instruction;
    }
    steps_.push_back({count[DEVICE], count[HOST]});
    for (int o = 0; o < instruction.operands_size(); ++o) {
      const int b = instruction.operands(o).buffer();
      uses_[b].push_back({.instruction = i,
                          .operand = o,
                          .tier = tier.value_or(TierOf(program.buffers(b)))});
    }
  }
}

std::vector<TierRun> TierUses::RunsOf(int buffer,
                                      const StayingRuns& staying) const {
  const std::vector<TierUse>& uses = uses_[buffer];
  const auto goes_on = [&](const TierUse& a, const TierUse& b) {
    if (a.tier != b.tier) return false;
    const int apart =
        StepAt(b.instruction, a.tier) - StepAt(a.instruction, a.tier);
    return apart <= 1 || staying.count({buffer, a.instruction}) > 0;
  };
  std::vector<TierRun> runs;
  for (size_t begin = 0, end = 0; begin < uses.size(); begin = end) {
    end = begin + 1;
    while (end < uses.size() && goes_on(uses[end - 1], uses[end])) ++end;
    runs.push_back(TierRun(uses).subspan(begin, end - begin));
  }
  return runs;
}

int TierUses::StepAt(int instruction, Tier tier) const {
  const auto& [device, host] = steps_[instruction];
  return tier == DEVICE ? device : host;
}

}  // namespace troupe
