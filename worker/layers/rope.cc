// Queries and keys turned by their positions, in place; their gradient is
// turned back, in place. As many columns of a head turn as there are
// frequencies for.
#include <vector>

#include "ops/rotary.h"
#include "proto/base/check.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

constexpr int kTime = 1;  // of [batch, time, columns]

struct Rotation {
  explicit Rotation(const Op::Rotation& rotation)
      : inverse_frequencies(rotation.inverse_frequencies().begin(),
                            rotation.inverse_frequencies().end()),
        scale(rotation.factor()) {}

  const std::vector<double> inverse_frequencies;
  const double scale;
};

class RopeLayer final : public Layer {
 public:
  explicit RopeLayer(const OpBinding& op)
      : y_(op.Output("y")),
        dy_(op.OutputGradient("y")),
        training_(op.op().rope().training()),
        decoding_(op.op().rope().decoding()),
        positions_(op.Positions("x")),
        documents_(op.DocumentsHere()) {
    CHECK(AreSamePlace(op.places().inputs[0], op.places().outputs[0]))
        << "x of a ROPE must not be read by others: it is turned in place";
    const TensorSpec& x = op.view().input("x");
    const Dim& columns = x.dims(x.dims_size() - 1);
    for (int i = 0; i + 1 < columns.sections_size(); ++i) {
      heads_ += columns.sections(i).count();
      columns_ += SectionSize(columns.sections(i));
    }
  }

  void Forward(const LayerCall& call) const override {
    const bool decodes = call.decoding.count > 0;
    Turn(call, decodes ? decoding_ : training_, y_,
         {.heads = static_cast<int>(heads_)});
  }

  void BackwardInput(const LayerCall& call) const override {
    Turn(call, training_, dy_,
         {.heads = static_cast<int>(heads_), .inverse = true});
  }

 private:
  void Turn(const LayerCall& call, const Rotation& rotation,
            const OperandPlace& place, RotaryArgs args) const {
    const Tensor all = place.In(call);
    args.inverse_frequencies = rotation.inverse_frequencies.data();
    args.turned = static_cast<int64_t>(2 * rotation.inverse_frequencies.size());
    args.scale = rotation.scale;
    args.documents = documents_.In(call);
    for (const SliceRun& run : positions_) {
      args.x = positions_.size() == 1
                   ? all
                   : all.Slice(kTime, run.local, run.local + run.count);
      args.x = args.x.Slice(all.rank() - 1, 0, columns_);
      args.first_position = run.whole + call.decoding.first_position;
      Rotary(call.device, args);
    }
  }

  const OperandPlace y_;
  const OperandPlace dy_;
  const Rotation training_;
  const Rotation decoding_;
  const std::vector<SliceRun> positions_;
  const Documents documents_;
  int64_t heads_ = 0;    // that turn
  int64_t columns_ = 0;  // of these
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewRope(const OpBinding& op) {
  return std::make_unique<RopeLayer>(op);
}

}  // namespace troupe
