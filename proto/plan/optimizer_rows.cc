#include "proto/plan/optimizer_rows.h"

#include <algorithm>

#include "proto/base/matrix_workspace.h"
#include "proto/plan/optimizer_states.h"

namespace troupe {
namespace {

constexpr absl::string_view kAdafactorStates[] = {kRowState, kColumnState,
                                                  "exp_avg_sq"};
constexpr absl::string_view kAdamWStates[] = {"exp_avg", "exp_avg_sq"};
constexpr absl::string_view kLionStates[] = {"exp_avg"};
constexpr absl::string_view kMomentumStates[] = {"momentum"};

// Five Newton-Schulz iterations (ops/muon.h).
double MuonFlops(int64_t rows, int64_t columns) {
  constexpr double kIterations = 5;
  const auto side = static_cast<double>(std::min(rows, columns));
  const auto length = static_cast<double>(std::max(rows, columns));
  return kIterations * (4 * side * side * length + 2 * side * side * side);
}

constexpr OptimizerRow kRows[] = {
    {.name = "adafactor",
     .states = kAdafactorStates,
     .updates = OptimizerRow::kParameters,
     .workspace = AdafactorWorkspace,
     .reads_again = true},
    {.name = "adamw",
     .states = kAdamWStates,
     .blends = OptimizerRow::kFirstMean,
     .corrects_first_steps = true},
    {.name = "lion",
     .states = kLionStates,
     .blends = OptimizerRow::kSecondMean},
    {.name = "muon",
     .states = kMomentumStates,
     .updates = OptimizerRow::kMatrices,
     .blends = OptimizerRow::kSum,
     .workspace = MuonWorkspace,
     .product_flops = MuonFlops},
    {.name = "sgd",
     .states = kMomentumStates,
     .states_need_momentum = true,
     .blends = OptimizerRow::kSum},
};

}  // namespace

absl::Span<const OptimizerRow> OptimizerRows() { return kRows; }

const OptimizerRow* FindOptimizerRow(absl::string_view name) {
  for (const OptimizerRow& row : kRows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

bool ChangesParameters(const OptimizerSpec& optimizer) {
  return optimizer.name() != "none";
}

}  // namespace troupe
