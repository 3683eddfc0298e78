// Small searches, drawn by seed: jobs and workers of which everything that the
// space has can be planned and simulated, to hold a choice against the best.
#ifndef TROUPE_TESTS_SCHEDULER_SEARCH_DRAWN_SPACE_H_
#define TROUPE_TESTS_SCHEDULER_SEARCH_DRAWN_SPACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/optional.h"
#include "proto/cluster.pb.h"
#include "proto/job.pb.h"

namespace troupe {

struct DrawnSpace {
  JobSpec job;  // with parallelism: auto
  std::vector<WorkerDescription> workers;
  std::string name;  // what was drawn, in words
};

// 2 to `workers_max` workers on one to four hosts, of one kind or two, with
// slow or fast links, and memory that a part of all plans fits.
DrawnSpace DrawSpace(uint64_t seed, int workers_max);

// A plan that fits.
struct Best {
  double seconds = 0;  // of a step
  std::string way;
};
// Of all candidates and all that may be recomputed. nullopt: none fits.
struct Everything {
  absl::optional<Best> best;
  int64_t plans = 0;
  int64_t fitting = 0;
  // Of those that fit: by how much their estimates are too small and too large
  // at most (0.1: 10 %), and how many need less memory than they say.
  double too_small = 0;
  double too_large = 0;
  int64_t bounds_broken = 0;
  std::string broken;  // the last of these
  // How many take less time than their bound, and by how much at most.
  int64_t least_broken = 0;
  double least_too_long = 0;
};
Everything SimulateEverything(const DrawnSpace& space);

// What the search chooses: the step of the whole plan, and what it simulated.
struct Chosen {
  absl::optional<Best> best;
  int64_t simulated = 0;
  double error = 0;  // of estimates, at most
  std::string refusal;
};
Chosen ChooseIn(const DrawnSpace& space);

}  // namespace troupe

#endif  // TROUPE_TESTS_SCHEDULER_SEARCH_DRAWN_SPACE_H_
