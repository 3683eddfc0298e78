#include "worker/instructions/outer_reduce.h"

#include "absl/strings/str_cat.h"
#include "ops/reduce.h"
#include "ops/tensor.h"
#include "proto/base/status.h"
#include "worker/instructions/outer_call.h"

namespace troupe {
namespace {

Tensor Floats(char* data, int64_t count) {
  return Tensor(data, DType::kF32, {count});
}

// The mean of this rank's piece of all islands, compressed, in the place of its
// own piece.
void MeanOfPiece(const Call& call, const ChangeLayout& layout, int own,
                 char* change) {
  const int64_t count = layout.ElementsOf(own);
  if (count == 0) return;
  Device& device = DeviceOf(call);
  char* const sum = change + layout.sum();
  char* const one = change + layout.one();
  for (int island = 0; island < layout.islands; ++island) {
    char* const piece =
        change + layout.received() + island * layout.piece_bytes;
    char* const to = island == 0 ? sum : one;
    Expand(call, piece, count, reinterpret_cast<float*>(to));
    if (island > 0) {
      Add(device, {.x = Floats(one, count), .y = Floats(sum, count)});
    }
  }
  Scale(device, {.x = Floats(sum, count),
                 .alpha = 1.0f / static_cast<float>(layout.islands)});
  Compress(call, reinterpret_cast<float*>(sum), count,
           change + own * layout.piece_bytes);
}

}  // namespace

absl::Status RunOuterReduce(const Call& call) {
  const ChangeLayout layout = ChangeOf(call);
  if (layout.elements == 0) return absl::OkStatus();
  Communicator& communicator =
      *call.state.communicators.at(call.instruction.group());
  const CommOptions options = CommOptionsOf(
      call, absl::StrCat("the change of unit ", call.instruction.unit()));
  char* const change = NeedOperand(call, Instruction::CHANGE);
  if (!layout.compressed) {
    return communicator.AllReduce(
        {.data = change, .elements = layout.elements, .element = DType::kF32},
        ReduceOp::kSum, options);
  }
  const auto bytes = [&](int64_t from, int64_t count) {
    return CommBuffer{
        .data = change + from, .elements = count, .element = DType::kU8};
  };
  RETURN_IF_ERROR(communicator.AllToAll(
      {.send = bytes(0, layout.pieces_bytes()),
       .receive = bytes(layout.received(), layout.pieces_bytes())},
      options));
  MeanOfPiece(call, layout, communicator.rank(), change);
  return communicator.AllGather(
      {.send =
           bytes(communicator.rank() * layout.piece_bytes, layout.piece_bytes),
       .receive = bytes(0, layout.pieces_bytes())},
      options);
}

}  // namespace troupe
