// Ring self-attention (Sequence Parallelism, Li et al., arXiv 2105.13120): the
// positions of each sequence are cut over the ranks of an axis, which are a
// ring. Keys go around, until each rank has whole rows of scores for its
// queries; then values do. Rows of scores are in memory, sequence x sequence of
// all ranks together, which is what attention is for that needs them; where
// none does, ring_attention.cc keeps nothing of them.
//
//   SPLIT            queries, keys and values
//   at each hop:     SCORES of the keys that are here
//   SOFTMAX
//   at each hop:     WEIGHTED_VALUES of the values that are here
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/plan/ops/op_view.h"
#include "proto/plan/slices.h"
#include "proto/plan/tensor_spec.h"
#include "scheduler/layouts/ring.h"

namespace troupe {
namespace {

// Of [batch, sequence, heads], those of [batch, heads, sequence, keys].
Layout LayoutOfScores(const Layout& of_queries) {
  Layout layout = of_queries;
  for (Layout::AxisLayout& axis : *layout.mutable_axes()) {
    if (axis.placement() != Layout::SHARD || axis.dim() == 0) continue;
    axis.set_dim(axis.dim() == 1 ? 2 : 1);
  }
  return layout;
}

class Rows {
 public:
  Rows(const AxisSpan& axis, const Op& attention, UnitTable& table)
      : axis_(axis),
        attention_(attention),
        writer_(attention, table),
        qkv_(OpView(table, attention).Input("qkv")),
        documents_(OpView(table, attention).Input("documents")),
        y_(OpView(table, attention).Output("y")),
        scale_(AttentionScale({table, attention})) {}

  void Write() {
    const auto [q, kv] = writer_.Split(qkv_, 1, "queries", "keys and values");
    const auto [k, v] = writer_.Split(kv, 1, "keys", "values");
    WeighValues(Softmax(Scores(q, k)), v);
  }

 private:
  // [batch, heads, sequence, keys]
  int NewScores(int q, const std::string& what) {
    const int scores = writer_.NewTensor(q, what);
    TensorSpec& spec = writer_.tensor(scores);
    const Dim positions = spec.dims(1);
    Dim heads = spec.dims(2);
    heads.mutable_sections(0)->set_width(1);
    *spec.mutable_dims(1) = heads;
    *spec.mutable_dims(2) = positions;
    *spec.add_dims() = DimOf({{Dim::KEYS, WholeCount(positions.sections(0))}});
    *spec.mutable_layout() = LayoutOfScores(spec.layout());
    *spec.mutable_gradient_layout() = LayoutOfScores(spec.gradient_layout());
    return scores;
  }

  void SetHop(int hop, Op& op) const {
    op.mutable_hop()->set_axis(axis_.name);
    op.mutable_hop()->set_number(hop);
  }

  int Scores(int q, int k) {
    Around keys(axis_, k, writer_);
    int scores = -1;
    for (int hop = 0; hop < axis_.size; ++hop) {
      const int here = keys.Arrive();
      const int before = std::exchange(
          scores, NewScores(q, absl::StrCat("scores, hop ", hop)));
      SetHop(hop, writer_.AddOp(Op::SCORES,
                                {{"q", q}, {"k", here}, {"y before", before}},
                                {{"y", scores}}));
      keys.GoOn();
    }
    return scores;
  }

  int Softmax(int scores) {
    const int y = writer_.NewTensor(scores, "probabilities");
    const bool drops = attention_.mask().probability() > 0;
    const int dropped =
        drops ? writer_.NewTensor(scores, "probabilities, dropped") : -1;
    Op& softmax =
        writer_.AddOp(Op::SOFTMAX, {{"x", scores}, {"documents", documents_}},
                      {{"y", y}, {"dropped", dropped}});
    softmax.mutable_softmax()->set_scale(scale_);
    if (drops) *softmax.mutable_mask() = attention_.mask();
    return drops ? dropped : y;
  }

  void WeighValues(int p, int v) {
    Around values(axis_, v, writer_);
    int y = -1;
    for (int hop = 0; hop < axis_.size; ++hop) {
      const bool is_last = hop + 1 == axis_.size;
      const int here = values.Arrive();
      const int before = std::exchange(
          y, is_last
                 ? y_
                 : writer_.NewTensor(y_, absl::StrCat("so far, hop ", hop)));
      const int after =
          is_last ? -1
                  : writer_.NewTensor(
                        p, absl::StrCat("probabilities after hop ", hop));
      SetHop(hop, writer_.AddOp(Op::WEIGHTED_VALUES,
                                {{"p", p}, {"v", here}, {"y before", before}},
                                {{"y", y}, {"p after", after}}));
      p = after;
      values.GoOn();
    }
  }

  const AxisSpan& axis_;
  const Op attention_;
  TableWriter writer_;
  const int qkv_;
  const int documents_;  // -1: there are none
  const int y_;
  const double scale_;
};

void HandKeysThenValuesAround(const AxisSpan& axis, UnitTable& table) {
  ReplaceOps(
      Op::ATTENTION,
      [&axis](const Op& attention, UnitTable& table) {
        Rows(axis, attention, table).Write();
      },
      table);
}

}  // namespace

LayoutRow RingSelfAttention() {
  return {.field = "context",
          .method = "ring_self_attention",
          .axes = {{.name = "context",
                    .rules = {{.kind = Dim::SEQUENCE,
                               .field = "training.sequence_length",
                               .loaded = true}},
                    .rewrite = HandKeysThenValuesAround,
                    .resting = Resting::kDealt}},
          .takes_graphs = false,
          .fewer = DivisorsOf,
          .leaner = {.field = "context_method",
                     .value = "ring",
                     .why = "as no scores are in memory"}};
}

}  // namespace troupe
