// What the optimizers need of a plan, a row for each: their states, whether
// they update whole matrices, what their updates work in. Code that lays out,
// predicts, checks or compares state asks the row; worker/model/optimizer.cc
// has their updates, and scheduler/planner/resolve_optimizer.cc their settings.
#ifndef TROUPE_PROTO_PLAN_OPTIMIZER_ROWS_H_
#define TROUPE_PROTO_PLAN_OPTIMIZER_ROWS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "proto/job.pb.h"

namespace troupe {

struct OptimizerRow {
  // What an update is of.
  enum Updates {
    kElements,    // each element by itself
    kMatrices,    // whole matrices, and nothing else
    kParameters,  // whole matrices, and whole vectors
  };
  // What the first state is of the gradients that came.
  enum Blends {
    kNoGradients,  // another thing
    kSum,          // their sum, which OptimizerSpec.momentum decays
    kFirstMean,    // their mean, which the first of betas decays
    kSecondMean,   // their mean, which the second of betas decays
  };
  absl::string_view name;
  // Its own beside each parameter, in this order (optimizer_states.h, which has
  // what any rule may keep behind them).
  absl::Span<const absl::string_view> states;
  // It keeps those only with a momentum above 0.
  bool states_need_momentum = false;
  Updates updates = kElements;
  Blends blends = kNoGradients;
  // Elements of f32 that the update of a matrix works in; null: none.
  int64_t (*workspace)(int64_t rows, int64_t columns) = nullptr;
  // FLOPs of the products of such an update; null: none.
  double (*product_flops)(int64_t rows, int64_t columns) = nullptr;
  // Whether an update reads gradients and weights again, for sums over rows,
  // columns and all.
  bool reads_again = false;
  // Whether states are corrected for the steps that they have seen.
  bool corrects_first_steps = false;
};

// All that there are, by name. "none" is not among them.
absl::Span<const OptimizerRow> OptimizerRows();

// Null: there is none of that name.
const OptimizerRow* FindOptimizerRow(absl::string_view name);

// Whether the job changes parameters at all: its optimizer is not "none".
bool ChangesParameters(const OptimizerSpec& optimizer);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_OPTIMIZER_ROWS_H_
