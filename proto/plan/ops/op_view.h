// An op with the tensors that it names: what the files of the kinds read.
#ifndef TROUPE_PROTO_PLAN_OPS_OP_VIEW_H_
#define TROUPE_PROTO_PLAN_OPS_OP_VIEW_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "proto/unit.pb.h"

namespace troupe {

// Borrows both.
class OpView {
 public:
  OpView(const UnitTable& table, const Op& op) : table_(table), op_(op) {}

  const Op& op() const { return op_; }

  // The tensor that is this operand, or -1.
  int Input(absl::string_view name) const;
  int Output(absl::string_view name) const;
  int BackwardInput(absl::string_view name) const;
  bool HasInput(absl::string_view name) const { return Input(name) >= 0; }
  bool HasOutput(absl::string_view name) const { return Output(name) >= 0; }

  // Whether other ops read this tensor.
  bool IsReadElsewhere(int tensor) const;

  // The operands' tensors, which must be there.
  const TensorSpec& input(absl::string_view name) const;
  const TensorSpec& output(absl::string_view name) const;

 private:
  const UnitTable& table_;
  const Op& op_;
};

// Of a LINEAR: the first of its parameters; as many biases may follow.
inline int WeightCount(const Op& linear) {
  return linear.parameters_size() / (linear.linear().bias() ? 2 : 1);
}

// Whether the index'th of an op's parameters is trained, or any is.
bool Trains(const Op& op, int index);
bool TrainsAny(const Op& op);

// Of an ATTENTION, or of a part of one; nothing of others.
struct AttentionShape {
  int64_t length = 0;    // of this call's queries, and keys
  int64_t heads = 0;     // of queries
  int64_t kv_heads = 0;  // of keys, and of values
  int64_t head_dim = 0;  // of queries and keys
  int64_t value_dim = 0;  // of values
};
absl::optional<AttentionShape> AttentionShapeOf(const OpView& op);
// Of its scores. REQUIRES an op that has a shape.
double AttentionScale(const OpView& op);
// Of products with all heads of queries and keys, and with all of values,
// `keys` and `values` elements, of which each row sees `seen` positions.
Work AttentionWork(double keys, double values, double seen, bool backward);

// Sizes as numbers to count work with: of rows that there may be, those that
// are expected.
double Rows(const TensorSpec& tensor);
double Columns(const TensorSpec& tensor);
double Elements(const TensorSpec& tensor);
// Of all elements, without gaps.
double Bytes(const TensorSpec& tensor);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_OPS_OP_VIEW_H_
