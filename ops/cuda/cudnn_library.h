// cuDNN's functions, looked up when the process runs. It is not linked: its
// libraries are 490 MB, which not every machine with a GPU has, and where they
// are not there all works without them (docs/cuda.md). What it computes is
// described to it as a graph (cudnn_graph.h).
#ifndef TROUPE_OPS_CUDA_CUDNN_LIBRARY_H_
#define TROUPE_OPS_CUDA_CUDNN_LIBRARY_H_

#include <cudnn_graph.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe::cuda {

struct CudnnLibrary {
  decltype(&cudnnGetVersion) get_version = nullptr;
  decltype(&cudnnGetErrorString) get_error_string = nullptr;
  decltype(&cudnnGetLastErrorString) get_last_error_string = nullptr;
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnDestroy) destroy = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&cudnnBackendSetAttribute) set_attribute = nullptr;
  decltype(&cudnnBackendGetAttribute) get_attribute = nullptr;
  decltype(&cudnnBackendFinalize) finalize = nullptr;
  decltype(&cudnnBackendExecute) execute = nullptr;

  // What the loader finds as libcudnn.so.9; it stays until the process ends, as
  // such libraries like it. NotFound where there is none, or one that lacks
  // some of the functions.
  static absl::StatusOr<CudnnLibrary> Load();

  std::string VersionText() const;  // "9.19.0"

  // Internal: "cudnnBackendFinalize: CUDNN_STATUS_NOT_SUPPORTED, and why".
  absl::Status ToStatus(cudnnStatus_t code, absl::string_view call) const;
};

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_CUDNN_LIBRARY_H_
