#include "scheduler/passes/passes.h"

#include "scheduler/passes/add_checkpoint.h"
#include "scheduler/passes/add_fill.h"
#include "scheduler/passes/add_validation.h"
#include "scheduler/passes/assign_slots.h"
#include "scheduler/passes/declare_buffers.h"
#include "scheduler/passes/declare_sums.h"
#include "scheduler/passes/derive_after.h"
#include "scheduler/passes/exchange_islands.h"
#include "scheduler/passes/expand_stages.h"
#include "scheduler/passes/gather_parameters.h"
#include "scheduler/passes/gradient_norm.h"
#include "scheduler/passes/keep_copies.h"
#include "scheduler/passes/load_batches.h"
#include "scheduler/passes/move_between_tiers.h"
#include "scheduler/passes/optimizer_steps.h"
#include "scheduler/passes/reduce_gradients.h"
#include "scheduler/passes/reduce_scalars.h"
#include "scheduler/passes/scatter_gradients.h"
#include "scheduler/passes/take_turns.h"

namespace troupe {
namespace {

constexpr size_t kMemoryPasses = 2;  // the last ones
constexpr bool kTrains = true;

}  // namespace

const std::vector<Pass>& Passes() {
  static const auto* const kPasses = new std::vector<Pass>{
      {"declare sums", DeclareSums},
      {"expand stages", ExpandStages, kTrains},
      {"add fill", AddFill, kTrains},
      {"add validation", AddValidation},
      {"load batches", LoadBatches},
      {"gather parameters", GatherParameters},
      {"scatter gradients", ScatterGradients, kTrains},
      {"reduce gradients", ReduceGradients, kTrains},
      {"take turns", TakeTurns, kTrains},
      {"gradient norm", GradientNorm, kTrains},
      {"reduce scalars", ReduceScalars},
      {"optimizer steps", OptimizerSteps, kTrains},
      {"exchange islands", ExchangeIslands, kTrains},
      {"add checkpoint", AddCheckpoint, kTrains},
      {"keep copies", KeepCopies, kTrains},
      // Nothing above knows of operands; nothing behind what moves them adds
      // instructions.
      {"declare buffers", DeclareBuffers},
      {"move between tiers", MoveBetweenTiers},
      {"assign slots", AssignSlots},
      {"derive after", DeriveAfter},
  };
  return *kPasses;
}

absl::Span<const Pass> ProgramPasses() {
  return absl::MakeConstSpan(Passes()).first(Passes().size() - kMemoryPasses);
}

absl::Span<const Pass> MemoryPasses() {
  return absl::MakeConstSpan(Passes()).last(kMemoryPasses);
}

void RunPasses(Draft& draft) {
  for (const Pass& pass : Passes()) pass.Run(draft);
}

}  // namespace troupe
