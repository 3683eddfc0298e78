// The blocks of a tensor that go to ranks, behind one another, and back: PACK
// forward and UNPACK backward are one function, and the other two its inverse.
#include <algorithm>
#include <vector>

#include "ops/reduce.h"
#include "proto/plan/slices.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

class PackLayer final : public Layer {
 public:
  explicit PackLayer(const OpBinding& op)
      : packs_(op.op().kind() == Op::PACK),
        x_(op.Input("x")),
        y_(op.Output("y")),
        dx_(op.InputGradient("x")),
        dy_(op.OutputGradient("y")),
        dim_(op.op().pack().dim()),
        blocks_(op.op().pack().blocks()) {
    const TensorSpec& x = op.view().input("x");
    const TensorSpec& y = op.view().output("y");
    const Dim& whole = (packs_ ? x : y).dims(dim_);
    const Dim& block = (packs_ ? y : x).dims(dim_);
    Range in_whole;
    Range in_block;
    for (int s = 0; s < whole.sections_size(); ++s) {
      const Dim::Section& section = whole.sections(s);
      const int64_t width = section.width();
      in_block.end += SectionSize(block.sections(s));
      for (int b = 0; b < blocks_; ++b) {
        const Range piece =
            PieceOf(section.count(), {.index = b, .count = blocks_});
        pieces_.push_back(
            {.block = b,
             .in_whole = {in_whole.begin + piece.begin * width,
                          in_whole.begin + piece.end * width},
             .in_block = in_block,
             .again = b > 0 && section.count() < blocks_ &&
                      piece == PieceOf(section.count(),
                                       {.index = b - 1, .count = blocks_})});
      }
      in_whole.begin += SectionSize(section);
      in_block.begin = in_block.end;
    }
  }

  void Forward(const LayerCall& call) const override {
    if (packs_) {
      Pack(call, x_.In(call), y_.In(call));
    } else {
      Unpack(call, x_.In(call), y_.In(call));
    }
  }

  void BackwardInput(const LayerCall& call) const override {
    if (packs_) {
      Unpack(call, dy_.In(call), dx_.In(call));
    } else {
      Pack(call, dy_.In(call), dx_.In(call));
    }
  }

 private:
  struct Piece {
    int block = 0;
    Range in_whole;
    Range in_block;
    bool again = false;  // the block before has the same
  };

  void Pack(const LayerCall& call, const Tensor& whole,
            const Tensor& blocks) const {
    if (whole.raw() == blocks.raw()) return;
    for (const Piece& piece : pieces_) {
      Copy(call.device, {.x = Of(whole, piece), .y = In(blocks, piece)});
    }
  }

  // What several blocks have is summed.
  void Unpack(const LayerCall& call, const Tensor& blocks,
              const Tensor& whole) const {
    if (whole.raw() == blocks.raw()) return;
    for (const Piece& piece : pieces_) {
      const Tensor from = In(blocks, piece);
      const Tensor to = Of(whole, piece);
      if (piece.again) {
        Add(call.device, {.x = from, .y = to});
      } else {
        Copy(call.device, {.x = from, .y = to});
      }
    }
  }

  Tensor Of(const Tensor& whole, const Piece& piece) const {
    return whole.Slice(dim_, piece.in_whole.begin, piece.in_whole.end);
  }
  Tensor In(const Tensor& blocks, const Piece& piece) const {
    const int64_t batch = blocks.dim(0) / blocks_;
    return blocks.Slice(0, piece.block * batch, (piece.block + 1) * batch)
        .Slice(dim_, piece.in_block.begin, piece.in_block.end);
  }

  const bool packs_;
  const OperandPlace x_;
  const OperandPlace y_;
  const OperandPlace dx_;
  const OperandPlace dy_;
  const int dim_;
  const int blocks_;
  std::vector<Piece> pieces_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewPack(const OpBinding& op) {
  return std::make_unique<PackLayer>(op);
}

}  // namespace troupe
