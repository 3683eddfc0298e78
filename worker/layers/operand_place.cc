#include "worker/layers/operand_place.h"

#include <algorithm>

#include "proto/base/check.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/element_dtype.h"

namespace troupe {
namespace {

Tensor View(void* data, DType dtype, int rank,
            const std::array<int64_t, 4>& dims) {
  switch (rank) {
    case 1:
      return Tensor(data, dtype, {dims[0]});
    case 2:
      return Tensor(data, dtype, {dims[0], dims[1]});
    case 3:
      return Tensor(data, dtype, {dims[0], dims[1], dims[2]});
    default:
      return Tensor(data, dtype, {dims[0], dims[1], dims[2], dims[3]});
  }
}

bool IsOfPositions(const Dim& dim) {
  return dim.sections_size() == 1 && dim.sections(0).kind() == Dim::SEQUENCE;
}

}  // namespace

OperandPlace::OperandPlace(const UnitTable& table, const TensorPlace& place)
    : forward_(place),
      recompute_(place.InRecompute()),
      backward_(place.InBackward()) {
  if (!exists()) return;
  const TensorSpec& tensor = table.tensors(place.tensor);
  rank_ = tensor.dims_size();
  CHECK(rank_ >= 1 && rank_ <= 4) << tensor.name();
  dtype_ = DTypeOfElement(tensor.dtype());
  row_stride_ = RowStrideOf(tensor);
  for (int i = 0; i < rank_; ++i) {
    dims_[i] = DimSize(tensor.dims(i));
    if (IsOfPositions(tensor.dims(i))) sequence_dim_ = i;
  }
}

OperandPlace OperandPlace::OfGradient(const UnitTable& table,
                                      const TensorPlace& place) {
  OperandPlace gradient(table, place);
  if (!gradient.exists()) return gradient;
  const ElementType own = table.tensors(place.tensor).gradient_dtype();
  if (own != ELEMENT_TYPE_UNSPECIFIED) gradient.dtype_ = DTypeOfElement(own);
  return gradient;
}

void* OperandPlace::DataIn(const LayerCall& call) const {
  const TensorPlace& place = call.pass == UnitPass::kForward     ? forward_
                             : call.pass == UnitPass::kRecompute ? recompute_
                                                                 : backward_;
  void* const memory =
      call.memory[static_cast<size_t>(place.memory)][place.port];
  CHECK(memory != nullptr) << "a buffer that the call needs is missing";
  return static_cast<char*>(memory) + place.offset_bytes;
}

Tensor OperandPlace::In(const LayerCall& call) const {
  if (!exists()) return Tensor();
  void* const data = DataIn(call);
  std::array<int64_t, 4> dims = dims_;
  if (call.decoding.count > 0 && sequence_dim_ >= 0) {
    CHECK_LE(call.decoding.count, dims[sequence_dim_]);
    dims[sequence_dim_] = call.decoding.count;
  }
  const int64_t columns = dims[rank_ - 1];
  if (row_stride_ <= columns) return View(data, dtype_, rank_, dims);
  dims[rank_ - 1] = row_stride_;
  return View(data, dtype_, rank_, dims).Slice(rank_ - 1, 0, columns);
}

}  // namespace troupe
