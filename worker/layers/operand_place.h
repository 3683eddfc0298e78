// Where a value or a gradient lies, known before the buffers are: what a layer
// keeps of each operand, and turns into a Tensor in every call.
#ifndef TROUPE_WORKER_LAYERS_OPERAND_PLACE_H_
#define TROUPE_WORKER_LAYERS_OPERAND_PLACE_H_

#include <array>
#include <cstdint>

#include "ops/tensor.h"
#include "proto/cluster.pb.h"
#include "proto/plan/place_unit.h"
#include "proto/unit.pb.h"
#include "worker/layers/layer.h"

namespace troupe {

class OperandPlace {
 public:
  OperandPlace() = default;  // lies nowhere
  // REQUIRES a tensor of 1 to 4 dims.
  OperandPlace(const UnitTable& table, const TensorPlace& place);
  static OperandPlace OfGradient(const UnitTable& table,
                                 const TensorPlace& place);

  bool exists() const { return forward_.exists(); }

  // Empty where it lies nowhere. Of a value that is made again, or brought
  // back, the one of the call's pass. When decoding, its dim of positions is
  // that of the call.
  Tensor In(const LayerCall& call) const;
  // The same as rows of its last dim.
  Tensor RowsIn(const LayerCall& call) const {
    const Tensor all = In(call);
    return all.View({all.rows(), all.columns()});
  }

 private:
  void* DataIn(const LayerCall& call) const;

  TensorPlace forward_;
  TensorPlace recompute_;
  TensorPlace backward_;
  DType dtype_ = DType::kF32;
  int rank_ = 0;
  std::array<int64_t, 4> dims_{};
  int sequence_dim_ = -1;  // of positions
  int64_t row_stride_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_LAYERS_OPERAND_PLACE_H_
