#include "proto/plan/ops/op_view.h"

#include <algorithm>

#include "proto/base/check.h"
#include "proto/plan/precision.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

template <typename Operands>
int Find(const Operands& operands, absl::string_view name) {
  for (const Op::Operand& operand : operands) {
    if (operand.name() == name) return operand.tensor();
  }
  return -1;
}

}  // namespace

int OpView::Input(absl::string_view name) const {
  return Find(op_.inputs(), name);
}

int OpView::Output(absl::string_view name) const {
  return Find(op_.outputs(), name);
}

int OpView::BackwardInput(absl::string_view name) const {
  return Find(op_.backward_inputs(), name);
}

bool OpView::IsReadElsewhere(int tensor) const {
  for (const Op& other : table_.ops()) {
    if (&other == &op_) continue;
    for (const Op::Operand& input : other.inputs()) {
      if (input.tensor() == tensor) return true;
    }
  }
  return false;
}

const TensorSpec& OpView::input(absl::string_view name) const {
  const int tensor = Input(name);
  CHECK_GE(tensor, 0) << Op::Kind_Name(op_.kind()) << " has no input " << name;
  return table_.tensors(tensor);
}

const TensorSpec& OpView::output(absl::string_view name) const {
  const int tensor = Output(name);
  CHECK_GE(tensor, 0) << Op::Kind_Name(op_.kind()) << " has no output " << name;
  return table_.tensors(tensor);
}

bool Trains(const Op& op, int index) {
  const auto& frozen = op.frozen_parameters();
  return std::count(frozen.begin(), frozen.end(), op.parameters(index)) == 0;
}

bool TrainsAny(const Op& op) {
  for (int i = 0; i < op.parameters_size(); ++i) {
    if (Trains(op, i)) return true;
  }
  return false;
}

absl::optional<AttentionShape> AttentionShapeOf(const OpView& op) {
  const bool is_part = op.op().kind() == Op::ATTENTION_PART;
  if (!is_part && op.op().kind() != Op::ATTENTION) return absl::nullopt;
  const TensorSpec& q = op.input(is_part ? "q" : "qkv");
  const Dim::Section& queries = q.dims(2).sections(0);
  const Dim& of_keys = is_part ? op.input("kv").dims(2) : q.dims(2);
  const Dim::Section& keys = of_keys.sections(is_part ? 0 : 1);
  const Dim::Section& values = of_keys.sections(is_part ? 1 : 2);
  return AttentionShape{.length = DimSize(q.dims(1)),
                        .heads = queries.count(),
                        .kv_heads = keys.count(),
                        .head_dim = queries.width(),
                        .value_dim = values.width()};
}

double Rows(const TensorSpec& tensor) {
  return static_cast<double>(tensor.has_expected_rows() ? tensor.expected_rows()
                                                        : RowsOf(tensor));
}

double Columns(const TensorSpec& tensor) {
  return static_cast<double>(ColumnsOf(tensor));
}

double Elements(const TensorSpec& tensor) {
  if (!tensor.has_expected_rows()) {
    return static_cast<double>(ElementsOf(tensor));
  }
  const double all = Rows(tensor) / static_cast<double>(RowsOf(tensor));
  return all * static_cast<double>(ElementsOf(tensor));
}

double Bytes(const TensorSpec& tensor) {
  return Elements(tensor) * static_cast<double>(BytesOfElement(tensor.dtype()));
}

}  // namespace troupe
