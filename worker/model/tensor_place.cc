#include "worker/model/tensor_place.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ops/device.h"
#include "proto/base/check.h"

namespace troupe {

Tensor TensorPlace::In(void* buffer) const {
  CHECK(buffer != nullptr) << "a buffer that the call needs is missing";
  void* data = static_cast<char*>(buffer) + offset_bytes;
  switch (dims.size()) {
    case 1:
      return Tensor(data, dtype, {dims[0]});
    case 2:
      return Tensor(data, dtype, {dims[0], dims[1]});
    case 3:
      return Tensor(data, dtype, {dims[0], dims[1], dims[2]});
    default:
      CHECK_EQ(dims.size(), 4u);
      return Tensor(data, dtype, {dims[0], dims[1], dims[2], dims[3]});
  }
}

TensorPlace BufferLayout::Add(std::vector<int64_t> dims, DType dtype) {
  constexpr int64_t kAlignment = Device::kAlignment;
  int64_t bytes = DTypeBytes(dtype);
  for (const int64_t dim : dims) bytes *= dim;
  const TensorPlace place = {bytes_, dtype, std::move(dims)};
  bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return place;
}

absl::StatusOr<ParameterPlace> FindParameter(const Unit& unit,
                                             const std::string& name,
                                             const std::vector<int64_t>& dims) {
  for (const Parameter& parameter : unit.parameters()) {
    if (parameter.name() != name) continue;
    const std::vector<int64_t> shape(parameter.shape().begin(),
                                     parameter.shape().end());
    const bool computes = parameter.dtype() == F32 || parameter.dtype() == BF16;
    if (shape != dims || !computes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "parameter ", name, " is ", ElementType_Name(parameter.dtype()), "[",
          absl::StrJoin(shape, ", "), "] in the plan, but the model needs ",
          computes ? ElementType_Name(parameter.dtype()) : "F32", "[",
          absl::StrJoin(dims, ", "), "]"));
    }
    const auto place = [&](DType dtype) {
      return TensorPlace{
          parameter.offset() * static_cast<int64_t>(DTypeBytes(dtype)), dtype,
          dims};
    };
    return ParameterPlace{.values = place(ComputeDType(parameter.dtype())),
                          .gradient = place(DType::kF32)};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the plan's unit has no parameter named ", name));
}

absl::optional<ParameterPlace> JoinRows(const ParameterPlace& above,
                                        const ParameterPlace& below) {
  int64_t bytes = DTypeBytes(above.gradient.dtype);
  for (const int64_t dim : above.gradient.dims) bytes *= dim;
  if (above.gradient.offset_bytes + bytes != below.gradient.offset_bytes) {
    return absl::nullopt;
  }
  ParameterPlace both = above;
  both.values.dims[0] += below.values.dims[0];
  both.gradient.dims[0] += below.gradient.dims[0];
  return both;
}

DType ComputeDType(ElementType type) {
  CHECK(type == F32 || type == BF16) << ElementType_Name(type);
  return type == BF16 ? DType::kBF16 : DType::kF32;
}

}  // namespace troupe
