// Which ranks share the experts of a layer. Tokens are cut by `data`, by
// `context` and, between norms, by `tensor` with sequence_parallel, so that any
// of these ranks may have some of the experts (parallel folding, arXiv
// 2504.14960): parallelism.expert takes ranks of data; where these do not
// suffice, all of context too, and then all of tensor.
#ifndef TROUPE_SCHEDULER_LAYOUTS_EXPERT_RANKS_H_
#define TROUPE_SCHEDULER_LAYOUTS_EXPERT_RANKS_H_

#include <string>
#include <vector>

#include "proto/job.pb.h"

namespace troupe {

struct ExpertRanks {
  int data = 1;          // how many of data's
  bool context = false;  // and all of these
  bool tensor = false;
  // False: no such choice makes as many as parallelism.expert says.
  bool fits = true;
  bool operator==(const ExpertRanks&) const = default;
};

// The first choice that fits, in the order above. With expert_tensor: 1 those
// of tensor are taken in any case, with another number in none.
ExpertRanks ExpertRanksOf(const ParallelismSpec& parallelism);

// What parallelism.expert may be on these ranks, ascending, from 2 on.
std::vector<int> ExpertSizes(const ParallelismSpec& parallelism);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_EXPERT_RANKS_H_
