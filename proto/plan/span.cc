#include "proto/plan/span.h"

#include <vector>

#include "proto/plan/groups.h"
#include "proto/plan/meeting.h"
#include "proto/plan/operand.h"

namespace troupe {

Span SpanOf(const Instruction& instruction, int index) {
  Span span;
  span.set_instruction(index);
  span.set_kind(instruction.kind());
  span.set_lane(instruction.lane());
  if (instruction.has_unit()) span.set_unit(instruction.unit());
  span.set_unit_count(instruction.unit_count());
  if (instruction.has_micro_batch()) {
    span.set_micro_batch(instruction.micro_batch());
  }
  if (instruction.has_peer()) span.set_peer(instruction.peer());
  span.set_ahead(instruction.ahead());
  if (IsCollective(instruction.kind()) &&
      instruction.kind() != Instruction::REDUCE_SCALARS) {
    span.set_group(instruction.group());
  }
  if (instruction.has_exchange()) {
    span.set_exchange(ExchangeNumber(instruction.exchange()));
  }
  return span;
}

void NameRanks(const Plan& plan, RankTimeline& timeline) {
  const int rank = timeline.rank();
  std::vector<int> numbers;  // by group of the plan
  int before = 0;
  for (const Group& group : plan.groups()) {
    numbers.push_back(before + GroupNumber(plan.mesh(), group, rank));
    before += GroupCount(plan.mesh(), group);
  }
  for (Span& span : *timeline.mutable_spans()) {
    if (span.has_group()) span.set_group(numbers.at(span.group()));
    if (!span.has_peer()) continue;
    span.set_peer(PeerRank(plan.mesh(), rank, span.peer()));
  }
}

}  // namespace troupe
