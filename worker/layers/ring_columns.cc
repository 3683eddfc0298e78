#include "worker/layers/ring_columns.h"

#include "proto/plan/mesh.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {

RingColumns::RingColumns(const OpBinding& op, absl::string_view moved) {
  const OpView view = op.view();
  const TensorSpec& keys = view.input(moved);
  // Scores are made of queries; queries' shape is what probabilities make.
  const TensorSpec& queries =
      view.HasInput("q") ? view.input("q") : view.output("y");
  const Dim::Section& of_heads = queries.dims(2).sections(0);
  samples_ = DimSize(queries.dims(0));
  heads_ = of_heads.count();
  width_ = of_heads.width();
  kv_heads_ = keys.dims(2).sections(0).count();
  const Op::Hop& hop = op.op().hop();
  MeshPlace place = op.place();
  if (hop.number() > 0) {
    place.rank = RankBefore(*place.mesh, hop.axis(), place.rank, hop.number());
  }
  columns_ = SectionPiece(keys.dims(1).sections(0), place);
}

void RingColumns::ForHeads(absl::FunctionRef<void(const Head&)> body) const {
  const int64_t group = heads_ / kv_heads_;
  for (int64_t sample = 0; sample < samples_; ++sample) {
    for (int64_t head = 0; head < heads_; ++head) {
      body({.sample = sample,
            .head = head,
            .kv_head = head / group,
            .shares_keys = head % group > 0,
            .width = width_,
            .columns = columns_});
    }
  }
}

bool RingColumns::SamePlace(const OpBinding& op, absl::string_view input,
                            absl::string_view output) {
  const auto find = [](const auto& operands,
                       const std::vector<TensorPlace>& places,
                       absl::string_view name) {
    for (int i = 0; i < operands.size(); ++i) {
      if (operands.Get(i).name() == name) return places[i];
    }
    return TensorPlace();
  };
  const TensorPlace from =
      find(op.op().inputs(), op.places().inputs, input);
  const TensorPlace to =
      find(op.op().outputs(), op.places().outputs, output);
  return AreSamePlace(from, to);
}

}  // namespace troupe
