// Plans drawn at random from all that a plan may be, each with all the rest:
// architecture, precision and that of gradients, frozen parameters, ranks along
// each axis, schedule and stages, ZeRO, recomputation, tiers of memory,
// micro-batches, clipping, dropout, rules of the optimizer, and another plan
// that goes on from a checkpoint of the first. A draw is a pure function of its
// seed and number. A few of them are tests of every build, as many as one likes
// a command (plan_matrix_main.cc).
#ifndef TROUPE_TESTS_EQUIVALENCE_PLAN_MATRIX_H_
#define TROUPE_TESTS_EQUIVALENCE_PLAN_MATRIX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "proto/job.pb.h"
#include "tests/equivalence/reference_runs.h"

namespace troupe {

struct PlanDraw {
  std::string name;
  std::vector<Leg> legs;
  // What they are to train as: the single rank; of a schedule that uses older
  // weights, the same cut into its stages and replicas only.
  JobSpec reference;

  // OK, or why the planner refuses one of the legs.
  absl::Status Refusal() const;
  // In which they compute, and keep gradients of parameters: "f32", "bf16",
  // "fp16", "bf16, gradients too".
  std::string precision() const;
};

PlanDraw DrawPlan(uint64_t seed, int number);

}  // namespace troupe

#endif  // TROUPE_TESTS_EQUIVALENCE_PLAN_MATRIX_H_
