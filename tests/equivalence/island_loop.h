// DiLoCo (arXiv 2311.08105, algorithm 1) and Streaming DiLoCo (arXiv
// 2501.18512, algorithm 2) as plainly as it can be written: one process, a
// model for each island, one loop, and the outer optimizer in double precision.
// What islands must agree with. Shares with them the units, the inner
// optimizer's arithmetic and the data, and nothing of plans, programs or ranks.
#ifndef TROUPE_TESTS_EQUIVALENCE_ISLAND_LOOP_H_
#define TROUPE_TESTS_EQUIVALENCE_ISLAND_LOOP_H_

#include <vector>

#include "proto/job.pb.h"

namespace troupe {

struct IslandStep {
  double loss = 0;
  double gradient_norm = 0;
};

// By island, of every step. REQUIRES a resolved job in f32, whose replicas have
// micro-batches of their own.
std::vector<std::vector<IslandStep>> TrainIslands(const JobSpec& job);

}  // namespace troupe

#endif  // TROUPE_TESTS_EQUIVALENCE_ISLAND_LOOP_H_
