// Two ranks as two threads, with the communicators of their plan, for tests of
// what goes from one to the other.
#ifndef TROUPE_TESTS_WORKER_INSTRUCTIONS_TWO_RANKS_H_
#define TROUPE_TESTS_WORKER_INSTRUCTIONS_TWO_RANKS_H_

#include <functional>

#include "proto/program.pb.h"
#include "tests/worker/rank/small_rank.h"

namespace troupe {

// Runs `body` for each, side by side. They are the global ranks 3 and 7 of
// their group; `peer` is the other one.
void RunOnTwoRanks(const std::function<void(SmallRank& rank, int peer)>& body);

// A SEND or a RECV over the first group, with the buffer that it moves.
struct TransferFields {
  Instruction::Kind kind = Instruction::SEND;
  bool gradient = false;
  int unit = 0;
  int peer = 0;
};
Instruction TransferInstruction(const SmallRank& rank,
                                const TransferFields& fields);

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_INSTRUCTIONS_TWO_RANKS_H_
