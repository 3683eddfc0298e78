// One thing that cuDNN is told: a tensor, an operation, a graph, a plan. It is
// made, given its attributes by name, and finalised, after which it does not
// change.
#ifndef TROUPE_OPS_CUDA_CUDNN_DESCRIPTOR_H_
#define TROUPE_OPS_CUDA_CUDNN_DESCRIPTOR_H_

#include <cudnn_graph.h>

#include <cstdint>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/cuda/cudnn_library.h"

namespace troupe::cuda {

// How cuDNN calls the type of an attribute's values. A descriptor's is void*,
// as that of pointers to memory is, so these are told by name (SetPointers).
template <typename T>
constexpr cudnnBackendAttributeType_t CudnnTypeOf() {
  if constexpr (std::is_same_v<T, int64_t>) return CUDNN_TYPE_INT64;
  if constexpr (std::is_same_v<T, float>) return CUDNN_TYPE_FLOAT;
  if constexpr (std::is_same_v<T, bool>) return CUDNN_TYPE_BOOLEAN;
  if constexpr (std::is_same_v<T, char>) return CUDNN_TYPE_CHAR;
  if constexpr (std::is_same_v<T, cudnnHandle_t>) return CUDNN_TYPE_HANDLE;
  if constexpr (std::is_same_v<T, cudnnDataType_t>) return CUDNN_TYPE_DATA_TYPE;
  if constexpr (std::is_same_v<T, cudnnBackendHeurMode_t>) {
    return CUDNN_TYPE_HEUR_MODE;
  }
  if constexpr (std::is_same_v<T, cudnnPointwiseMode_t>) {
    return CUDNN_TYPE_POINTWISE_MODE;
  }
  if constexpr (std::is_same_v<T, cudnnReduceTensorOp_t>) {
    return CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
  }
  if constexpr (std::is_same_v<T, cudnnBackendNumericalNote_t>) {
    return CUDNN_TYPE_NUMERICAL_NOTE;
  }
  return CUDNN_TYPE_BACKEND_DESCRIPTOR;
}

class CudnnDescriptor {
 public:
  // Borrows the library.
  static absl::StatusOr<CudnnDescriptor> Create(
      const CudnnLibrary& library, cudnnBackendDescriptorType_t type) {
    CudnnDescriptor made(library);
    const cudnnStatus_t code = library.create_descriptor(type, &made.handle_);
    if (code == CUDNN_STATUS_SUCCESS) return made;
    return library.ToStatus(code, "cudnnBackendCreateDescriptor");
  }
  CudnnDescriptor(CudnnDescriptor&& from) noexcept
      : library_(from.library_),
        handle_(std::exchange(from.handle_, nullptr)) {}
  CudnnDescriptor& operator=(CudnnDescriptor&& from) noexcept {
    std::swap(library_, from.library_);
    std::swap(handle_, from.handle_);
    return *this;
  }
  ~CudnnDescriptor() {
    if (handle_ != nullptr) library_->destroy_descriptor(handle_);
  }

  cudnnBackendDescriptor_t get() const { return handle_; }

  template <typename T>
  absl::Status Set(cudnnBackendAttributeName_t name, const T& value) {
    return SetAll(name, absl::Span<const T>(&value, 1));
  }
  template <typename T>
  absl::Status SetAll(cudnnBackendAttributeName_t name,
                      absl::Span<const T> values) {
    return SetRaw(name, CudnnTypeOf<T>(), values.size(), values.data());
  }
  absl::Status SetPointers(cudnnBackendAttributeName_t name,
                           absl::Span<void* const> values) {
    return SetRaw(name, CUDNN_TYPE_VOID_PTR, values.size(), values.data());
  }
  // Fills in `values`, descriptors being there before, and returns how many
  // there are; with none to fill in it only counts them.
  template <typename T>
  absl::StatusOr<int64_t> Get(cudnnBackendAttributeName_t name,
                              absl::Span<T> values) const {
    int64_t count = 0;
    const cudnnStatus_t code = library_->get_attribute(
        handle_, name, CudnnTypeOf<T>(), static_cast<int64_t>(values.size()),
        &count, values.data());
    if (code == CUDNN_STATUS_SUCCESS) return count;
    return library_->ToStatus(code, "cudnnBackendGetAttribute");
  }
  absl::Status Finalize() {
    return library_->ToStatus(library_->finalize(handle_),
                              "cudnnBackendFinalize");
  }

 private:
  explicit CudnnDescriptor(const CudnnLibrary& library) : library_(&library) {}
  absl::Status SetRaw(cudnnBackendAttributeName_t name,
                      cudnnBackendAttributeType_t type, size_t count,
                      const void* values) {
    return library_->ToStatus(
        library_->set_attribute(handle_, name, type,
                                static_cast<int64_t>(count), values),
        "cudnnBackendSetAttribute");
  }

  const CudnnLibrary* library_;
  cudnnBackendDescriptor_t handle_ = nullptr;
};

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_CUDNN_DESCRIPTOR_H_
