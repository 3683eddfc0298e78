// y = base + scale dropout(x) A^T B^T. Weights A that lie below one another are
// one product. `low` has the scale in it, so that the products with B need
// none.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "ops/dropout.h"
#include "ops/matmul.h"
#include "ops/reduce.h"
#include "proto/base/status.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

// Of a tensor's columns.
struct ColumnRange {
  int64_t first = 0;
  int64_t count = 0;

  Tensor Of(const Tensor& all) const {
    if (count == all.columns()) return all;
    return all.Slice(all.rank() - 1, first, first + count);
  }
};

struct Down {
  ParameterPlace weight;  // one A, or several below one another
  ColumnRange low;
};

struct Up {
  ParameterPlace weight;  // one B
  ColumnRange low;
  ColumnRange y;
  bool first_of_low = true;  // no B before it reads these columns of low
};

class LowRankLayer final : public Layer {
 public:
  LowRankLayer(const OpBinding& op, std::vector<Down> downs,
               std::vector<Up> ups)
      : downs_(std::move(downs)),
        ups_(std::move(ups)),
        scale_(static_cast<float>(op.op().low_rank().scale())),
        x_(op.Input("x")),
        base_(op.Input("base")),
        y_(op.Output("y")),
        low_(op.Output("low")),
        masked_(op.Output("masked")),
        dx_(op.InputGradient("x")),
        dy_(op.OutputGradient("y")),
        dlow_(op.OutputGradient("low")),
        mask_(op.OwnMask()) {}

  void Forward(const LayerCall& call) const override {
    const Tensor x = x_.In(call), y = y_.In(call), low = low_.In(call);
    const Tensor base = base_.In(call);
    if (masked_.exists()) Mask(call, x, masked_.In(call));
    const Tensor multiplied = Multiplied(call);
    for (const Down& down : downs_) {
      MatMul(call.device, {.a = multiplied,
                           .b = down.weight.Values(call),
                           .c = down.low.Of(low),
                           .transpose_b = true});
    }
    Scale(call.device, {.x = low, .alpha = scale_});
    if (y.raw() != base.raw()) Copy(call.device, {.x = base, .y = y});
    for (const Up& up : ups_) {
      MatMul(call.device, {.a = up.low.Of(low),
                           .b = up.weight.Values(call),
                           .c = up.y.Of(y),
                           .transpose_b = true,
                           .accumulate = true});
    }
  }

  void BackwardInput(const LayerCall& call) const override {
    const Tensor dlow = dlow_.In(call);
    MakeLowGradient(call, dlow);
    if (!dx_.exists()) return;
    const Tensor dx = dx_.In(call);
    for (const Down& down : downs_) {
      MatMul(call.device, {.a = down.low.Of(dlow),
                           .b = down.weight.Values(call),
                           .c = dx,
                           .accumulate = down.low.first > 0});
    }
    if (masked_.exists()) Mask(call, dx, dx);
  }

  void BackwardWeight(const LayerCall& call) const override {
    const Tensor dlow = dlow_.In(call), dy = dy_.In(call);
    for (const Down& down : downs_) {
      if (!down.weight.trained()) continue;
      AddGradient(call, down.low.Of(dlow), Multiplied(call), down.weight);
    }
    for (const Up& up : ups_) {
      if (!up.weight.trained()) continue;
      AddGradient(call, up.y.Of(dy), up.low.Of(low_.In(call)), up.weight);
    }
  }

 private:
  Tensor Multiplied(const LayerCall& call) const {
    return masked_.exists() ? masked_.In(call) : x_.In(call);
  }

  // Of x A^T, without the scale.
  void MakeLowGradient(const LayerCall& call, const Tensor& dlow) const {
    const Tensor dy = dy_.In(call);
    for (const Up& up : ups_) {
      MatMul(call.device, {.a = up.y.Of(dy),
                           .b = up.weight.Values(call),
                           .c = up.low.Of(dlow),
                           .accumulate = !up.first_of_low});
    }
    Scale(call.device, {.x = dlow, .alpha = scale_});
  }

  // A weight [out, in].
  static void AddGradient(const LayerCall& call, const Tensor& dy,
                          const Tensor& x, const ParameterPlace& weight) {
    MatMul(call.device, {.a = dy,
                         .b = x,
                         .c = weight.Gradient(call),
                         .transpose_a = true,
                         .accumulate = !call.context.gradients_are_zero});
  }

  void Mask(const LayerCall& call, const Tensor& x, const Tensor& y) const {
    const int64_t all = x.rows();
    for (const MaskedRows& rows : mask_.OfElements(call)) {
      ApplyDropout(
          call.device,
          {.x = rows.Of(x, all), .y = rows.Of(y, all), .mask = rows.mask});
    }
  }

  const std::vector<Down> downs_;
  const std::vector<Up> ups_;
  const float scale_;
  const OperandPlace x_;
  const OperandPlace base_;
  const OperandPlace y_;
  const OperandPlace low_;
  const OperandPlace masked_;  // nowhere: nothing is masked
  const OperandPlace dx_;
  const OperandPlace dy_;
  const OperandPlace dlow_;
  const MaskSource mask_;
};

// The columns of sections [first, first + count).
ColumnRange ColumnsOfSections(const TensorSpec& tensor, int first, int count) {
  const Dim& dim = tensor.dims(tensor.dims_size() - 1);
  ColumnRange range;
  for (int s = 0; s < first; ++s) range.first += SectionSize(dim.sections(s));
  for (int s = first; s < first + count; ++s) {
    range.count += SectionSize(dim.sections(s));
  }
  return range;
}

absl::StatusOr<std::vector<Down>> DownsOf(const OpBinding& op) {
  const TensorSpec& low = op.view().output("low");
  const int64_t in = ColumnsOf(op.view().input("x"));
  std::vector<Down> downs;
  for (int a = 0; a < low.dims(low.dims_size() - 1).sections_size(); ++a) {
    Down down = {.low = ColumnsOfSections(low, a, 1)};
    ASSIGN_OR_RETURN(down.weight, op.Parameter(a, {down.low.count, in}));
    const absl::optional<ParameterPlace> joined =
        downs.empty() ? absl::nullopt
                      : downs.back().weight.JoinedWith(down.weight);
    if (joined.has_value()) {
      downs.back().weight = *joined;
      downs.back().low.count += down.low.count;
    } else {
      downs.push_back(std::move(down));
    }
  }
  return downs;
}

absl::StatusOr<std::vector<Up>> UpsOf(const OpBinding& op) {
  const Op::LowRank& spec = op.op().low_rank();
  const TensorSpec& low = op.view().output("low");
  const int downs = op.op().parameters_size() - spec.columns_size();
  std::vector<bool> is_read(downs, false);
  std::vector<Up> ups;
  for (int b = 0; b < spec.columns_size(); ++b) {
    const Op::LowRank::Columns& columns = spec.columns(b);
    if (columns.down() < 0 || columns.down() >= downs) {
      return absl::InvalidArgumentError(absl::StrCat(
          "a LOW_RANK has ", downs, " weights A, and its weight B ", b,
          " belongs to number ", columns.down(),
          "; scheduler and worker must be of one build"));
    }
    Up up = {.low = ColumnsOfSections(low, columns.down(), 1),
             .y = ColumnsOfSections(op.view().output("y"), columns.section(),
                                    columns.sections()),
             .first_of_low = !is_read[columns.down()]};
    is_read[columns.down()] = true;
    ASSIGN_OR_RETURN(up.weight,
                     op.Parameter(downs + b, {up.y.count, up.low.count}));
    ups.push_back(std::move(up));
  }
  return ups;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewLowRank(const OpBinding& op) {
  ASSIGN_OR_RETURN(std::vector<Down> downs, DownsOf(op));
  ASSIGN_OR_RETURN(std::vector<Up> ups, UpsOf(op));
  return std::make_unique<LowRankLayer>(op, std::move(downs), std::move(ups));
}

}  // namespace troupe
