#include "proto/plan/decoding_table.h"

#include <utility>
#include <vector>

#include "proto/base/check.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/slices.h"

namespace troupe {
namespace {

Op::Operand OperandOf(const char* name, int tensor) {
  Op::Operand operand;
  operand.set_name(name);
  operand.set_tensor(tensor);
  return operand;
}

// The ops that are of no loss, and read nothing that those make.
class DecodingOps {
 public:
  explicit DecodingOps(const UnitTable& table)
      : table_(table), of_loss_(table.tensors_size()) {
    *decoding_.mutable_tensors() = table.tensors();
    for (const Op& op : table.ops()) Add(op);
  }

  UnitTable For(int64_t positions) {
    const int64_t rows = logits_ >= 0 ? 1 : positions;
    for (TensorSpec& tensor : *decoding_.mutable_tensors()) {
      for (Dim& dim : *tensor.mutable_dims()) {
        for (Dim::Section& section : *dim.mutable_sections()) {
          if (section.kind() == Dim::BATCH) section.set_count(1);
          if (section.kind() == Dim::SEQUENCE) section.set_count(rows);
        }
      }
    }
    if (logits_ >= 0) BringOut(logits_);
    return std::move(decoding_);
  }

 private:
  void Add(const Op& op) {
    CHECK(!op.has_mask()) << "text is generated without dropout";
    const OpRules rules = RulesOf({table_, op});
    // The first chunk of rows is all that there is of one position.
    bool of_loss = rules.training_only || !rules.decodes.empty() ||
                   op.chunk().first_row() > 0;
    for (const Op::Operand& input : op.inputs()) {
      of_loss |= of_loss_[input.tensor()];
    }
    if (!rules.decodes.empty() && op.chunk().first_row() == 0) {
      logits_ = OpView(table_, op).Input(rules.decodes);
    }
    if (!of_loss) {
      *decoding_.add_ops() = op;
      decoding_.mutable_ops(decoding_.ops_size() - 1)->clear_chunk();
      return;
    }
    for (const Op::Operand& output : op.outputs()) {
      of_loss_[output.tensor()] = true;
    }
  }

  // Logits are the unit's output; where ranks have some columns each, once they
  // are brought together.
  void BringOut(int logits) {
    decoding_.mutable_tensors(logits)->clear_row_alignment();
    const Layout layout = decoding_.tensors(logits).layout();
    for (const Layout::AxisLayout& axis : layout.axes()) {
      CHECK_EQ(axis.placement(), Layout::SHARD) << "of the logits";
      logits = Gather(logits, axis);
    }
    decoding_.mutable_tensors(logits)->set_home(TensorSpec::OUTPUT);
  }

  int Gather(int tensor, const Layout::AxisLayout& axis) {
    const int whole = decoding_.tensors_size();
    TensorSpec& gathered = *decoding_.add_tensors();
    gathered = decoding_.tensors(tensor);
    gathered.set_name(gathered.name() + " of all");
    gathered.clear_layout();
    gathered.clear_gradient_layout();
    for (Dim::Section& section :
         *gathered.mutable_dims(axis.dim())->mutable_sections()) {
      const Dim::Section::Cut* const cut = CutBy(section, axis.axis());
      if (cut == nullptr) continue;
      section.set_count(WholeCount(section));
      section.clear_cuts();
    }
    Op& op = *decoding_.add_ops();
    op.set_kind(Op::EXCHANGE);
    op.mutable_exchange()->add_axes(axis.axis());
    op.mutable_exchange()->set_forward(ALL_GATHER);
    *op.add_inputs() = OperandOf("x", tensor);
    *op.add_outputs() = OperandOf("y", whole);
    return whole;
  }

  const UnitTable& table_;
  UnitTable decoding_;
  std::vector<bool> of_loss_;  // by tensor
  int logits_ = -1;            // of the unit with the loss
};

}  // namespace

UnitTable DecodingTable(const UnitTable& table, int64_t positions) {
  return DecodingOps(table).For(positions);
}

}  // namespace troupe
