// Ring Attention (arXiv 2310.01889): the positions of each sequence are cut
// over the ranks of an axis, which are a ring. In attention keys and values go
// around it, a rank further at a time, while each rank attends with its queries
// to those that it has at the moment; backward they come back the other way,
// with their gradients. So a rank has a few ranks' keys at once, however many
// ranks there are.
//
// Where attention stays within documents, each rank knows where those of its
// queries begin: a hop computes nothing of keys that lie before all of them.
//
// In zigzag order, of n ranks the i-th has the i-th and the i-th last of 2 n
// pieces, so that a causal mask leaves all the same work at every hop.
//
//   SPLIT           queries, and keys and values
//   at each hop:
//     FORK          what is here, and what goes on
//     RETURN        backward: what was here at the hop before
//     ATTENTION_PART
//     SHIFT         to the next rank
#include "absl/strings/str_cat.h"
#include "proto/plan/ops/op_view.h"
#include "scheduler/layouts/ring.h"

namespace troupe {
namespace {

// The parts of one attention.
class Parts {
 public:
  Parts(const AxisSpan& axis, const Op& attention, UnitTable& table)
      : axis_(axis),
        attention_(attention),
        writer_(attention, table),
        qkv_(OpView(table, attention).Input("qkv")),
        documents_(OpView(table, attention).Input("documents")),
        y_(OpView(table, attention).Output("y")),
        logsumexp_(OpView(table, attention).Output("logsumexp")) {}

  void Write() {
    const auto [q, kv] = writer_.Split(qkv_, 1, "queries", "keys and values");
    Around keys(axis_, kv, writer_);
    for (int hop = 0; hop < axis_.size; ++hop) {
      AddPart(hop, q, keys.Arrive());
      keys.GoOn();
    }
  }

 private:
  void AddPart(int hop, int q, int kv) {
    const bool is_last = hop + 1 == axis_.size;
    const int y = is_last ? y_ : NewTensor(y_, "so far", hop);
    if (!is_last) writer_.tensor(y).set_dtype(F32);
    const int logsumexp =
        is_last ? logsumexp_ : NewTensor(logsumexp_, "logsumexp so far", hop);
    Op& part = writer_.AddOp(Op::ATTENTION_PART,
                             {{"q", q},
                              {"kv", kv},
                              {"y before", y_before_},
                              {"logsumexp before", logsumexp_before_},
                              {"documents", documents_}},
                             {{"y", y}, {"logsumexp", logsumexp}});
    *part.add_backward_inputs() = TableWriter::OperandOf("all y", y_);
    *part.add_backward_inputs() =
        TableWriter::OperandOf("all logsumexp", logsumexp_);
    if (attention_.has_mask()) *part.mutable_mask() = attention_.mask();
    if (attention_.has_softmax()) {
      *part.mutable_softmax() = attention_.softmax();
    }
    part.mutable_hop()->set_axis(axis_.name);
    part.mutable_hop()->set_number(hop);
    y_before_ = y;
    logsumexp_before_ = logsumexp;
  }

  int NewTensor(int like, const char* what, int hop) {
    return writer_.NewTensor(like, absl::StrCat(what, ", hop ", hop));
  }

  const AxisSpan& axis_;
  const Op attention_;
  TableWriter writer_;
  const int qkv_;
  const int documents_;  // -1: there are none
  const int y_;
  const int logsumexp_;
  int y_before_ = -1;
  int logsumexp_before_ = -1;
};

void HandKeysAround(const AxisSpan& axis, UnitTable& table) {
  ReplaceOps(
      Op::ATTENTION,
      [&axis](const Op& attention, UnitTable& table) {
        Parts(axis, attention, table).Write();
      },
      table);
}

}  // namespace

RowAxis RingAxis() {
  return {.name = "context",
          .rules = {{.kind = Dim::SEQUENCE,
                     .field = "training.sequence_length",
                     .loaded = true,
                     .zigzag = true}},
          .rewrite = HandKeysAround,
          .resting = Resting::kDealt};
}

LayoutRow RingAttention() {
  return {.field = "context",
          .method = "ring",
          .axes = {RingAxis()},
          .tries = TryAsItIs,
          .fewer = DivisorsOf,
          .is_advised = true};
}

}  // namespace troupe
