// Ring Attention (arXiv 2310.01889): the positions of each sequence are cut over
// the ranks of an axis, which are a ring. In attention keys and values go
// around it, a rank further at a time, while each rank attends with its queries
// to those that it has at the moment; backward they come back the other way,
// with their gradients. So no rank ever has more than two ranks' keys.
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
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/plan/axes.h"
#include "proto/plan/ops/op_view.h"
#include "scheduler/layouts/layouts.h"

namespace troupe {
namespace {

void ShiftBy(int hops, const std::string& axis, Layout& layout) {
  for (Layout::AxisLayout& of : *layout.mutable_axes()) {
    if (of.axis() == axis) of.set_shift(hops);
  }
}

// Puts a ring into the place of an ATTENTION.
class Ring {
 public:
  Ring(const AxisSpan& axis, const Op& attention, UnitTable& table)
      : axis_(axis),
        attention_(attention),
        table_(table),
        y_(OpView(table, attention).Output("y")),
        logsumexp_(OpView(table, attention).Output("logsumexp")) {}

  void Add() {
    const int qkv = OpView(table_, attention_).Input("qkv");
    const Dim columns = table_.tensors(qkv).dims(2);
    const int q = NewTensor(qkv, "queries");
    Dim& of_q = *table_.mutable_tensors(q)->mutable_dims(2);
    of_q.clear_sections();
    *of_q.add_sections() = columns.sections(0);
    int kv = NewTensor(qkv, "keys and values");
    table_.mutable_tensors(kv)->mutable_dims(2)->mutable_sections()
        ->DeleteSubrange(0, 1);
    AddOp(Op::SPLIT, {{"x", qkv}}, {{"y", q}, {"rest", kv}});
    int here_before = -1;
    for (int hop = 0; hop < axis_.size; ++hop) {
      const bool last = hop + 1 == axis_.size;
      int here = kv;
      int there = -1;
      if (!last) {
        here = NewTensor(kv, "here");
        there = NewTensor(kv, "going on");
        AddOp(Op::FORK, {{"x", kv}}, {{"y", here}, {"other", there}});
      }
      if (hop > 0) AddReturn(here_before, here);
      AddPart(hop, q, here);
      if (!last) kv = AddShift(hop + 1, there);
      here_before = here;
    }
  }

 private:
  struct Named {
    const char* name;
    int tensor;
  };

  // Like another, but within the unit.
  int NewTensor(int like, absl::string_view what) {
    TensorSpec& spec = *table_.add_tensors();
    spec = table_.tensors(like);
    spec.clear_home();
    spec.set_name(absl::StrCat(table_.tensors(y_).name(), " ", what,
                               hop_ > 0 ? absl::StrCat(" ", hop_) : ""));
    return table_.tensors_size() - 1;
  }

  Op& AddOp(Op::Kind kind, const std::vector<Named>& inputs,
            const std::vector<Named>& outputs) {
    Op& op = *table_.add_ops();
    op.set_kind(kind);
    for (const auto& [name, tensor] : inputs) {
      *op.add_inputs() = OperandOf(name, tensor);
    }
    for (const auto& [name, tensor] : outputs) {
      *op.add_outputs() = OperandOf(name, tensor);
    }
    return op;
  }

  static Op::Operand OperandOf(const char* name, int tensor) {
    Op::Operand operand;
    operand.set_name(name);
    operand.set_tensor(tensor);
    return operand;
  }

  void AddPart(int hop, int q, int kv) {
    std::vector<Named> inputs = {{"q", q}, {"kv", kv}};
    if (hop > 0) {
      inputs.push_back({"y before", y_so_far_});
      inputs.push_back({"logsumexp before", logsumexp_so_far_});
    }
    const bool last = hop + 1 == axis_.size;
    y_so_far_ = last ? y_ : NewTensor(y_, "so far");
    if (!last) table_.mutable_tensors(y_so_far_)->set_dtype(F32);
    logsumexp_so_far_ =
        last ? logsumexp_ : NewTensor(logsumexp_, "logsumexp so far");
    Op& part =
        AddOp(Op::ATTENTION_PART, inputs,
              {{"y", y_so_far_}, {"logsumexp", logsumexp_so_far_}});
    *part.add_backward_inputs() = OperandOf("all y", y_);
    *part.add_backward_inputs() = OperandOf("all logsumexp", logsumexp_);
    if (attention_.has_mask()) *part.mutable_mask() = attention_.mask();
    part.mutable_attention_part()->set_axis(axis_.name);
    part.mutable_attention_part()->set_hop(hop);
  }

  int AddShift(int hop, int from) {
    hop_ = hop;
    const int to = NewTensor(from, "keys and values");
    TensorSpec& moved = *table_.mutable_tensors(to);
    ShiftBy(hop, axis_.name, *moved.mutable_layout());
    ShiftBy(hop, axis_.name, *moved.mutable_gradient_layout());
    Op& shift = AddOp(Op::EXCHANGE, {{"x", from}}, {{"y", to}});
    shift.mutable_exchange()->set_axis(axis_.name);
    shift.mutable_exchange()->set_forward(SHIFT);
    shift.mutable_exchange()->set_backward(SHIFT);
    return to;
  }

  void AddReturn(int to, int from) {
    Op& back = AddOp(Op::RETURN, {{"x", to}, {"y", from}}, {});
    back.mutable_exchange()->set_axis(axis_.name);
    back.mutable_exchange()->set_backward(SHIFT);
  }

  const AxisSpan& axis_;
  const Op attention_;
  UnitTable& table_;
  const int y_;
  const int logsumexp_;
  int hop_ = 0;
  int y_so_far_ = -1;
  int logsumexp_so_far_ = -1;
};

void HandKeysAround(const AxisSpan& axis, UnitTable& table) {
  UnitTable whole;
  whole.mutable_ops()->Swap(table.mutable_ops());
  for (const Op& op : whole.ops()) {
    if (op.kind() == Op::ATTENTION) {
      Ring(axis, op, table).Add();
    } else {
      *table.add_ops() = op;
    }
  }
}

}  // namespace

LayoutRow RingAttention() {
  return {.name = "ring_attention",
          .axis = "context",
          .used =
              [](const ParallelismSpec& p) {
                return SizeOfAxis(p, "context") > 1 &&
                       (p.context_method() == "ring" ||
                        p.context_method() == "usp");
              },
          .rules = {{.kind = Dim::SEQUENCE,
                     .field = "training.sequence_length",
                     .loaded = true,
                     .zigzag = true}},
          .rewrite = HandKeysAround};
}

}  // namespace troupe
