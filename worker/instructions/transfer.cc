#include "worker/instructions/transfer.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/plan/groups.h"

namespace troupe {
namespace {

int PlaceIn(const CommGroup& group, int rank) {
  const auto found = std::find(group.ranks.begin(), group.ranks.end(), rank);
  CHECK(found != group.ranks.end())
      << "rank " << rank << " is not of group " << group.name;
  return static_cast<int>(found - group.ranks.begin());
}

}  // namespace

Transfer TransferOf(const Call& call) {
  const Instruction& instruction = call.instruction;
  const int unit = instruction.unit();
  char* const memory = NeedOperand(call, Instruction::MOVED);
  Communicator& communicator =
      *call.state.communicators.at(instruction.group());
  return {.communicator = communicator,
          .data = {.data = memory,
                   .elements = FindBuffer(call, Instruction::MOVED)->bytes(),
                   .element = DType::kU8},
          .peer = PlaceIn(communicator.group(),
                          PeerRank(call.state.plan->mesh(), call.state.rank(),
                                   instruction.peer())),
          .options = CommOptionsOf(
              call,
              absl::StrCat(instruction.gradient() ? "gradients" : "activations",
                           " of unit ", unit, ", micro-batch ",
                           instruction.micro_batch()))};
}

}  // namespace troupe
