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

absl::StatusOr<TensorPlace> FindParameter(const Unit& unit,
                                          const std::string& name,
                                          const std::vector<int64_t>& dims) {
  for (const Parameter& parameter : unit.parameters()) {
    if (parameter.name() != name) continue;
    const std::vector<int64_t> shape(parameter.shape().begin(),
                                     parameter.shape().end());
    if (shape != dims || parameter.dtype() != F32) {
      return absl::InvalidArgumentError(absl::StrCat(
          "parameter ", name, " is ", ElementType_Name(parameter.dtype()), "[",
          absl::StrJoin(shape, ", "), "] in the plan, but the model needs F32[",
          absl::StrJoin(dims, ", "), "]"));
    }
    return TensorPlace{
        parameter.offset() * static_cast<int64_t>(DTypeBytes(DType::kF32)),
        DType::kF32, dims};
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the plan's unit has no parameter named ", name));
}

}  // namespace troupe
