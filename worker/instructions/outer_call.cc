#include "worker/instructions/outer_call.h"

#include <algorithm>
#include <string>

#include "ops/int4.h"
#include "ops/reduce.h"
#include "ops/tensor.h"
#include "proto/plan/at_rest.h"

namespace troupe {
namespace {

const std::string& FormOf(const Call& call) {
  return call.state.plan->job().islands().compress();
}

}  // namespace

ChangeLayout ChangeOf(const Call& call) {
  int64_t elements = 0;
  for (const StretchAtRest& at : call.state.AtRest(call.instruction.unit())) {
    if (!at.stretch.frozen) elements += at.rests.size();
  }
  return LayChange(call.state.plan->job(), elements);
}

std::vector<OuterPiece> OuterPiecesOf(const Call& call) {
  RankState& state = call.state;
  const Plan& plan = *state.plan;
  const int unit = call.instruction.unit();
  std::vector<OuterPiece> pieces;
  int64_t first = 0;
  for (const StretchAtRest& at : state.AtRest(unit)) {
    if (at.stretch.frozen || at.rests.size() == 0) continue;
    char* const parameters = RestOf(call, Instruction::WEIGHTS, at);
    char* const master = RestOf(call, Instruction::MASTER, at);
    const OuterBuffers buffers = {
        .weights = master == nullptr ? parameters : master,
        .parameters = master == nullptr ? nullptr : parameters,
        .parameters_type = state.TypeOfParameters(call.instruction.unit()),
        .state = RestOf(call, Instruction::MOMENTS, at),
        .holds = at.rests};
    for (const OuterPiece& piece : OuterPiecesOf(
             plan.job().optimizer(), plan.units(unit), buffers, first)) {
      pieces.push_back(piece);
    }
    first += at.rests.size();
  }
  return pieces;
}

void ForChangeWindows(const Call& call, const ChangeLayout& layout,
                      absl::FunctionRef<void(const ChangeWindow&)> run) {
  for (int p = 0; p < layout.islands; ++p) {
    const int64_t begin = p * layout.piece_elements;
    const int64_t end = begin + layout.ElementsOf(p);
    for (int64_t from = begin; from < end; from += kChangeWindow) {
      run({.window = {from, std::min(end, from + kChangeWindow)},
           .offset = p * layout.piece_bytes +
                     CompressedBytes(FormOf(call), from - begin)});
    }
  }
}

void Compress(const Call& call, float* elements, int64_t count,
              char* compressed) {
  const Tensor x(elements, DType::kF32, {count});
  if (FormOf(call) == kAsInt4) {
    ToInt4(DeviceOf(call),
           {.elements = x,
            .compressed = Tensor(compressed, DType::kF32, {Int4Words(count)})});
    return;
  }
  Copy(DeviceOf(call),
       {.x = x, .y = Tensor(compressed, DType::kBF16, {count})});
}

void Expand(const Call& call, char* compressed, int64_t count,
            float* elements) {
  const Tensor y(elements, DType::kF32, {count});
  if (FormOf(call) == kAsInt4) {
    FromInt4(DeviceOf(call), {.elements = y,
                              .compressed = Tensor(compressed, DType::kF32,
                                                   {Int4Words(count)})});
    return;
  }
  Copy(DeviceOf(call),
       {.x = Tensor(compressed, DType::kBF16, {count}), .y = y});
}

}  // namespace troupe
