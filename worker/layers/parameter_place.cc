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
      offset_(parameter.offset()),
      rows_(DimSize(parameter.dims(0))),
      columns_(parameter.dims_size() > 1 ? DimSize(parameter.dims(1)) : 0) {
  CHECK_LE(parameter.dims_size(), 2) << parameter.name();
}

Tensor ParameterPlace::In(void* flat, DType dtype) const {
  if (!exists()) return Tensor();
  CHECK(flat != nullptr) << "a flat buffer that the call needs is missing";
  void* const data = static_cast<char*>(flat) +
                     offset_ * static_cast<int64_t>(DTypeBytes(dtype));
  return columns_ > 0 ? Tensor(data, dtype, {rows_, columns_})
                      : Tensor(data, dtype, {rows_});
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
  const int64_t elements = rows_ * std::max<int64_t>(1, columns_);
  if (tied_ != below.tied_ || frozen_ != below.frozen_ ||
      columns_ != below.columns_ || offset_ + elements != below.offset_) {
    return absl::nullopt;
  }
  ParameterPlace both = *this;
  both.rows_ += below.rows_;
  return both;
}

}  // namespace troupe
