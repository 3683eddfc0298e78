#include "scheduler/layouts/table_writer.h"

#include "absl/strings/str_cat.h"

namespace troupe {

TableWriter::TableWriter(const Op& op, UnitTable& table)
    : table_(table), name_(table.tensors(op.outputs(0).tensor()).name()) {}

Op& TableWriter::AddOp(Op::Kind kind, const std::vector<Named>& inputs,
                       const std::vector<Named>& outputs) {
  Op& op = *table_.add_ops();
  op.set_kind(kind);
  for (const auto& [name, tensor] : inputs) {
    if (tensor >= 0) *op.add_inputs() = OperandOf(name, tensor);
  }
  for (const auto& [name, tensor] : outputs) {
    if (tensor >= 0) *op.add_outputs() = OperandOf(name, tensor);
  }
  return op;
}

void TableWriter::Gather(const std::vector<std::string>& axes, int own,
                         int all) {
  for (const std::string& axis : axes) {
    Layout::AxisLayout& of_rank = *tensor(own).mutable_layout()->add_axes();
    of_rank.set_axis(axis);
    of_rank.set_placement(Layout::SHARD);
  }
  Op::Exchange& gather =
      *AddOp(Op::EXCHANGE, {{"x", own}}, {{"y", all}}).mutable_exchange();
  gather.mutable_axes()->Assign(axes.begin(), axes.end());
  gather.set_forward(ALL_GATHER);
}

Op::Operand TableWriter::OperandOf(const std::string& name, int tensor) {
  Op::Operand operand;
  operand.set_name(name);
  operand.set_tensor(tensor);
  return operand;
}

int TableWriter::NewTensor(int like, absl::string_view what) {
  TensorSpec spec = table_.tensors(like);
  spec.clear_home();
  spec.set_name(absl::StrCat(name_, " ", what));
  *table_.add_tensors() = std::move(spec);
  return table_.tensors_size() - 1;
}

std::pair<int, int> TableWriter::Split(int x, int first, absl::string_view what,
                                       absl::string_view others) {
  const int y = NewTensor(x, what);
  const int rest = NewTensor(x, others);
  auto& of_y = *tensor(y).mutable_dims(2)->mutable_sections();
  of_y.DeleteSubrange(first, of_y.size() - first);
  tensor(rest).mutable_dims(2)->mutable_sections()->DeleteSubrange(0, first);
  AddOp(Op::SPLIT, {{"x", x}}, {{"y", y}, {"rest", rest}});
  return {y, rest};
}

void ReplaceOps(Op::Kind kind,
                const std::function<void(const Op&, UnitTable&)>& replace,
                UnitTable& table) {
  UnitTable before;
  before.mutable_ops()->Swap(table.mutable_ops());
  for (const Op& op : before.ops()) {
    if (op.kind() == kind) {
      replace(op, table);
    } else {
      *table.add_ops() = op;
    }
  }
}

}  // namespace troupe
