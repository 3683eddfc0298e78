#include "ops/cuda/cudnn_library.h"

#include <dlfcn.h>

#include <array>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"

namespace troupe::cuda {
namespace {

template <typename Function>
absl::Status Find(void* library, const char* name, Function& to) {
  to = reinterpret_cast<Function>(dlsym(library, name));
  if (to != nullptr) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("libcudnn.so.9 has no ", name));
}

}  // namespace

absl::StatusOr<CudnnLibrary> CudnnLibrary::Load() {
  void* const file = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  if (file == nullptr) return absl::NotFoundError(dlerror());
  CudnnLibrary library;
  RETURN_IF_ERROR(Find(file, "cudnnGetVersion", library.get_version));
  RETURN_IF_ERROR(Find(file, "cudnnGetErrorString", library.get_error_string));
  RETURN_IF_ERROR(
      Find(file, "cudnnGetLastErrorString", library.get_last_error_string));
  RETURN_IF_ERROR(Find(file, "cudnnCreate", library.create));
  RETURN_IF_ERROR(Find(file, "cudnnDestroy", library.destroy));
  RETURN_IF_ERROR(Find(file, "cudnnSetStream", library.set_stream));
  RETURN_IF_ERROR(
      Find(file, "cudnnBackendCreateDescriptor", library.create_descriptor));
  RETURN_IF_ERROR(
      Find(file, "cudnnBackendDestroyDescriptor", library.destroy_descriptor));
  RETURN_IF_ERROR(
      Find(file, "cudnnBackendSetAttribute", library.set_attribute));
  RETURN_IF_ERROR(
      Find(file, "cudnnBackendGetAttribute", library.get_attribute));
  RETURN_IF_ERROR(Find(file, "cudnnBackendFinalize", library.finalize));
  RETURN_IF_ERROR(Find(file, "cudnnBackendExecute", library.execute));
  return library;
}

std::string CudnnLibrary::VersionText() const {
  const size_t version = get_version();
  return absl::StrCat(version / 10000, ".", version % 10000 / 100, ".",
                      version % 100);
}

absl::Status CudnnLibrary::ToStatus(cudnnStatus_t code,
                                    absl::string_view call) const {
  if (code == CUDNN_STATUS_SUCCESS) return absl::OkStatus();
  std::array<char, 512> why = {};
  get_last_error_string(why.data(), why.size());
  return absl::InternalError(
      absl::StrCat(call, ": ", get_error_string(code), " ", why.data()));
}

}  // namespace troupe::cuda
