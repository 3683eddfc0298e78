// Causal attention of a rank's queries to the keys of one rank of a ring, going
// on from what the calls before have found.
#include <vector>

#include "ops/attention.h"
#include "proto/base/check.h"
#include "proto/plan/mesh.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/kinds.h"

namespace troupe {
namespace {

constexpr int kPartColumns = 2;  // of [batch, sequence, columns]

// The positions that a rank has of a sequence: at most two runs.
SequenceRows RowsAt(const Dim::Section& positions, const MeshPlace& place) {
  const std::vector<Range> runs = SectionRuns(positions, place);
  CHECK_LE(runs.size(), 2u) << "runs of positions";
  SequenceRows rows = {.first = runs[0].begin};
  if (runs.size() < 2) return rows;
  rows.first_count = runs[0].size();
  rows.second = runs[1].begin;
  return rows;
}

class AttentionPartLayer final : public Layer {
 public:
  explicit AttentionPartLayer(const OpBinding& op)
      : q_(op.Input("q")),
        kv_(op.Input("kv")),
        y_before_(op.Input("y before")),
        y_(op.Output("y")),
        logsumexp_(op.Output("logsumexp")),
        all_y_(op.BackwardInput("all y")),
        all_logsumexp_(op.BackwardInput("all logsumexp")),
        d_all_y_(op.BackwardInputGradient("all y")),
        dq_(op.InputGradient(y_before_.exists() ? "y before" : "q")),
        d_kv_(op.InputGradient("kv")),
        documents_(op.DocumentsHere()),
        mask_(op.OwnMask()) {
    const OpView view = op.view();
    const bool is_last = view.Output("y") == view.BackwardInput("all y");
    if (!is_last) dq_before_ = op.OutputGradient("y");
    const Dim::Section& queries =
        view.input("q").dims(kPartColumns).sections(0);
    const Dim::Section& keys = view.input("kv").dims(kPartColumns).sections(0);
    heads_ = static_cast<int>(queries.count());
    kv_heads_ = static_cast<int>(keys.count());
    k_width_ = SectionSize(keys);
    v_width_ = SectionSize(view.input("kv").dims(kPartColumns).sections(1));
    scale_ = static_cast<float>(AttentionScale(view));
    const Dim::Section& positions = view.input("q").dims(1).sections(0);
    const Op::Hop& part = op.op().hop();
    part_ = {.length = WholeCount(positions),
             .queries = RowsAt(positions, op.place()),
             .keys = RowsAt(positions, {.mesh = op.place().mesh,
                                        .rank = RankBefore(
                                            *op.place().mesh, part.axis(),
                                            op.place().rank, part.number())})};
    const OpPlaces& places = op.places();
    for (size_t i = 0; i < places.inputs.size(); ++i) {
      if (op.op().inputs(static_cast<int>(i)).name() != "logsumexp before") {
        continue;
      }
      CHECK(places.inputs[i].memory == places.outputs[1].memory &&
            places.inputs[i].offset_bytes == places.outputs[1].offset_bytes)
          << "logsumexp goes on where it was";
    }
  }

  void Forward(const LayerCall& call) const override {
    const Tensor kv = kv_.In(call);
    Attention(call.device, {.q = q_.In(call),
                            .k = Keys(kv),
                            .v = Values(kv),
                            .o = y_.In(call),
                            .o_before = y_before_.In(call),
                            .logsumexp = logsumexp_.In(call),
                            .heads = heads_,
                            .kv_heads = kv_heads_,
                            .scale = scale_,
                            .part = part_,
                            .documents = documents_.In(call),
                            .dropout = mask_.OfProbabilities(call)});
  }

  void BackwardInput(const LayerCall& call) const override {
    const Tensor kv = kv_.In(call);
    const Tensor d_kv = d_kv_.In(call);
    AttentionBackward(call.device, {.q = q_.In(call),
                                    .k = Keys(kv),
                                    .v = Values(kv),
                                    .o = all_y_.In(call),
                                    .logsumexp = all_logsumexp_.In(call),
                                    .d_o = d_all_y_.In(call),
                                    .dq = dq_.In(call),
                                    .dk = Keys(d_kv),
                                    .dv = Values(d_kv),
                                    .dq_before = dq_before_.In(call),
                                    .heads = heads_,
                                    .kv_heads = kv_heads_,
                                    .scale = scale_,
                                    .part = part_,
                                    .documents = documents_.In(call),
                                    .dropout = mask_.OfProbabilities(call)});
  }

 private:
  Tensor Keys(const Tensor& kv) const {
    return kv.Slice(kPartColumns, 0, k_width_);
  }
  Tensor Values(const Tensor& kv) const {
    return kv.Slice(kPartColumns, k_width_, k_width_ + v_width_);
  }

  const OperandPlace q_;
  const OperandPlace kv_;
  const OperandPlace y_before_;
  const OperandPlace y_;
  const OperandPlace logsumexp_;
  const OperandPlace all_y_;
  const OperandPlace all_logsumexp_;
  const OperandPlace d_all_y_;
  const OperandPlace dq_;  // with what the calls behind have made of it
  const OperandPlace d_kv_;
  const Documents documents_;
  const MaskSource mask_;
  OperandPlace dq_before_;
  int heads_ = 0;
  int kv_heads_ = 0;
  int64_t k_width_ = 0;
  int64_t v_width_ = 0;
  float scale_ = 0;
  AttentionPart part_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Layer>> NewAttentionPart(const OpBinding& op) {
  return std::make_unique<AttentionPartLayer>(op);
}

}  // namespace troupe
