// Passes turn the compute order of stages into complete programs, each adding
// one thing: units, batches, reductions, the optimizer, buffers, slots, waits.
// The table in passes.cc is the order in which they run; a paradigm is a row in
// it.
//
// To add one: docs/how_to_add/pass.md.
#ifndef TROUPE_SCHEDULER_PASSES_PASSES_H_
#define TROUPE_SCHEDULER_PASSES_PASSES_H_

#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "scheduler/passes/draft.h"

namespace troupe {

// One row of the table. A pass cannot fail: what the user may get wrong is
// refused before, and check_program finds what a pass gets wrong.
struct Pass {
  absl::string_view name;
  void (*run)(Draft& draft);
  bool trains = false;  // left out of a job that only evaluates

  void Run(Draft& draft) const {
    if (!trains || !draft.plan.job().evaluate()) run(draft);
  }
};

// In the order in which they run.
const std::vector<Pass>& Passes();
// Those that make the programs, and those behind them that give these memory:
// the last alone run again where that is given in another way.
absl::Span<const Pass> ProgramPasses();
absl::Span<const Pass> MemoryPasses();

void RunPasses(Draft& draft);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_PASSES_PASSES_H_
