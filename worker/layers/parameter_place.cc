#include "worker/layers/parameter_place.h"

#include <algorithm>

#include "proto/base/check.h"
#include "proto/plan/tensor_spec.h"
#include "worker/layers/element_dtype.h"

namespace troupe {

ParameterPlace::ParameterPlace(const Parameter& parameter, bool tied)
    : tied_(tied),
      frozen_(parameter.frozen()),
      dtype_(DTypeOfElement(parameter.dtype())),
      offset_(parameter.offset()) {
  CHECK_LE(parameter.dims_size(), static_cast<int>(dims_.size()))
      << parameter.name();
  for (int i = 0; i < parameter.dims_size(); ++i) {
    dims_[i] = DimSize(parameter.dims(i));
  }
}

int64_t ParameterPlace::Elements() const {
  int64_t elements = 1;
  for (const int64_t dim : dims_) elements *= std::max<int64_t>(1, dim);
  return elements;
}

Tensor ParameterPlace::In(const FlatMemory& flat, DType dtype) const {
  if (!exists()) return Tensor();
  void* const data = flat.At({offset_, offset_ + Elements()},
                             static_cast<int64_t>(DTypeBytes(dtype)));
  CHECK(data != nullptr) << "a flat buffer that the call needs is missing";
  if (dims_[1] == 0) return Tensor(data, dtype, {dims_[0]});
  if (dims_[2] == 0) return Tensor(data, dtype, {dims_[0], dims_[1]});
  return Tensor(data, dtype, {dims_[0], dims_[1], dims_[2]});
}

Tensor ParameterPlace::Values(const LayerCall& call) const {
  return In(tied_ ? call.tied_parameters : call.parameters, dtype_);
}

Tensor ParameterPlace::Gradient(const LayerCall& call) const {
  if (!trained()) return Tensor();
  return In(tied_ ? call.tied_parameter_gradients : call.parameter_gradients,
            call.context.gradients_type);
}

absl::optional<ParameterPlace> ParameterPlace::JoinedWith(
    const ParameterPlace& below) const {
  if (tied_ != below.tied_ || frozen_ != below.frozen_ ||
      dims_[1] != below.dims_[1] || dims_[2] != below.dims_[2] ||
      offset_ + Elements() != below.offset_) {
    return absl::nullopt;
  }
  ParameterPlace both = *this;
  both.dims_[0] += below.dims_[0];
  return both;
}

}  // namespace troupe
