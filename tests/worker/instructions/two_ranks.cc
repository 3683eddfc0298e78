#include "tests/worker/instructions/two_ranks.h"

#include <thread>
#include <utility>
#include <vector>

#include "proto/base/check.h"
#include "tests/equivalence/small_job.h"
#include "worker/collective/create_communicator.h"
#include "worker/collective/key_value_store.h"

namespace troupe {

void RunOnTwoRanks(const std::function<void(SmallRank& rank, int peer)>& body) {
  const JobSpec job = SmallJob();
  InMemoryStore store;
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      // As if they stood far from one another on a pipeline.
      const auto move = [r](Plan& plan) {
        plan.mutable_mesh()->mutable_axes(0)->set_size(8);
        plan.mutable_mesh()->mutable_axes(1)->set_size(1);
        plan.set_rank(r == 0 ? 3 : 7);
      };
      SmallRank rank(job, {.ranks = 2, .rank = r, .change = move});
      for (const Group& group : rank.state().plan->groups()) {
        auto communicator = CreateCommunicator(
            "in_process", {.group = {.name = group.name(), .ranks = {3, 7}},
                           .rank = r,
                           .store = &store});
        CHECK_OK(communicator.status());
        rank.state().communicators.push_back(*std::move(communicator));
      }
      body(rank, r == 0 ? 7 : 3);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

Instruction TransferInstruction(const SmallRank& rank,
                                const TransferFields& fields) {
  const Buffer::Kind kind =
      fields.gradient ? Buffer::GRADIENT : Buffer::ACTIVATION;
  const Buffer* const buffer = &rank.Find(kind, fields.unit, 0);
  int index = 0;
  while (&rank.program().buffers(index) != buffer) ++index;
  Instruction instruction;
  instruction.set_kind(fields.kind);
  instruction.set_gradient(fields.gradient);
  instruction.set_unit(fields.unit);
  instruction.set_micro_batch(0);
  instruction.set_peer(fields.peer);
  instruction.set_group(0);
  Instruction::Operand& moved = *instruction.add_operands();
  moved.set_part(Instruction::MOVED);
  moved.set_buffer(index);
  moved.set_access(fields.kind == Instruction::RECV ? Instruction::WRITE
                                                    : Instruction::READ);
  return instruction;
}

}  // namespace troupe
