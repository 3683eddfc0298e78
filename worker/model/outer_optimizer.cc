#include "worker/model/outer_optimizer.h"

#include <algorithm>

#include "ops/average.h"
#include "ops/optimizer.h"
#include "ops/reduce.h"
#include "proto/base/check.h"
#include "proto/plan/at_rest.h"
#include "proto/plan/optimizer_rules.h"
#include "proto/plan/optimizer_states.h"

namespace troupe {
namespace {

Tensor Floats(float* data, int64_t count) {
  return Tensor(data, DType::kF32, {count});
}

// Where the elements of a rule's range have a state; null: they have none.
float* OuterStateOf(const std::vector<UnitState>& states,
                    absl::Span<const absl::string_view> names,
                    absl::string_view name, const OuterBuffers& buffers,
                    const Range& of) {
  auto* at = reinterpret_cast<float*>(buffers.state);
  for (size_t s = 0; s < names.size(); ++s) {
    if (names[s] == name) {
      return at + states[s].ElementsIn({buffers.holds.begin, of.begin});
    }
    at += states[s].ElementsIn(buffers.holds);
  }
  return nullptr;
}

// What of a piece lies in the window.
struct Cut {
  int64_t in_piece = 0;
  int64_t in_window = 0;
  int64_t count = 0;
};
Cut CutOf(const OuterPiece& piece, const Range& window) {
  const Range both = Both({piece.first, piece.first + piece.count}, window);
  return {.in_piece = both.begin - piece.first,
          .in_window = both.begin - window.begin,
          .count = std::max<int64_t>(0, both.size())};
}

}  // namespace

std::vector<OuterPiece> OuterPiecesOf(const OptimizerSpec& optimizer,
                                      const Unit& unit,
                                      const OuterBuffers& buffers,
                                      int64_t first) {
  const std::vector<UnitState> states = UnitStates(optimizer, unit);
  const auto width = static_cast<int64_t>(DTypeBytes(buffers.parameters_type));
  std::vector<OuterPiece> pieces;
  for (const RuleRange& rule : RuleRanges(unit)) {
    const Range of = Both(rule.range, buffers.holds);
    if (of.size() <= 0) continue;
    const auto names = StatesOfRule(optimizer, rule.rule);
    const int64_t begin = of.begin - buffers.holds.begin;
    OuterPiece& piece = pieces.emplace_back();
    piece.first = first + begin;
    piece.count = of.size();
    piece.weights = reinterpret_cast<float*>(buffers.weights) + begin;
    piece.outer_weights =
        OuterStateOf(states, names, kOuterWeightsState, buffers, of);
    piece.momentum =
        OuterStateOf(states, names, kOuterMomentumState, buffers, of);
    CHECK(piece.outer_weights != nullptr)
        << "rule " << rule.rule << " keeps no weights of the last exchange";
    if (buffers.parameters == nullptr) continue;
    piece.parameters = buffers.parameters + begin * width;
  }
  return pieces;
}

void TakeChange(Device& device, const std::vector<OuterPiece>& pieces,
                const Range& window, float* change) {
  for (const OuterPiece& piece : pieces) {
    const Cut cut = CutOf(piece, window);
    if (cut.count == 0) continue;
    const Tensor to = Floats(change + cut.in_window, cut.count);
    Copy(device,
         {.x = Floats(piece.outer_weights + cut.in_piece, cut.count), .y = to});
    Add(device, {.x = Floats(piece.weights + cut.in_piece, cut.count),
                 .y = to,
                 .alpha = -1.0f});
  }
}

void StepOuter(Device& device, const std::vector<OuterPiece>& pieces,
               const OuterSpec& outer, DType parameters_type,
               const OuterChange& change) {
  for (const OuterPiece& piece : pieces) {
    const Cut cut = CutOf(piece, change.window);
    if (cut.count == 0) continue;
    const Tensor weights = Floats(piece.weights + cut.in_piece, cut.count);
    Sgd(device,
        {.weights = Floats(piece.outer_weights + cut.in_piece, cut.count),
         .gradients = Floats(change.change + cut.in_window, cut.count),
         .momentum_buffer =
             piece.momentum == nullptr
                 ? Tensor()
                 : Floats(piece.momentum + cut.in_piece, cut.count),
         .parameters = change.mixing == 0 ? weights : Tensor(),
         .learning_rate = static_cast<float>(outer.lr()),
         .momentum = static_cast<float>(outer.momentum()),
         .nesterov = outer.momentum() != 0,
         .gradient_scale = static_cast<float>(change.scale)});
    if (change.mixing != 0) {
      Average(device,
              {.weights = Floats(piece.outer_weights + cut.in_piece, cut.count),
               .average = weights,
               .decay = change.mixing});
    }
    if (piece.parameters == nullptr) continue;
    const auto width = static_cast<int64_t>(DTypeBytes(parameters_type));
    Copy(device, {.x = weights,
                  .y = Tensor(piece.parameters + cut.in_piece * width,
                              parameters_type, {cut.count})});
  }
}

}  // namespace troupe
