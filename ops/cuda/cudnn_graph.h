// A computation as cuDNN's backend takes it: operations on tensors of four
// dims, most of which lie nowhere, as it makes one kernel of them all.
//
//   CudnnGraph graph(library);
//   const CudnnTensor q = graph.Memory(kQ, CUDNN_DATA_HALF, layout), ...;
//   const CudnnTensor scores = graph.Between(CUDNN_DATA_FLOAT, square);
//   graph.MatMul(q, k, scores);
//   ...
//   ASSIGN_OR_RETURN(CudnnPlan plan, graph.Plan({.handle = handle}));
//
// The first error of a call is kept, and returned by Plan.
#ifndef TROUPE_OPS_CUDA_CUDNN_GRAPH_H_
#define TROUPE_OPS_CUDA_CUDNN_GRAPH_H_

#include <cudnn_graph.h>

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ops/cuda/cudnn_descriptor.h"
#include "ops/cuda/cudnn_library.h"

namespace troupe::cuda {

// Of a tensor; strides are in elements.
struct CudnnLayout {
  std::array<int64_t, 4> dims = {1, 1, 1, 1};
  std::array<int64_t, 4> strides = {1, 1, 1, 1};

  // One row behind the other.
  static CudnnLayout Dense(const std::array<int64_t, 4>& dims) {
    return {.dims = dims,
            .strides = {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3],
                        1}};
  }
  // With its last two dims exchanged.
  CudnnLayout Transposed() const {
    return {.dims = {dims[0], dims[1], dims[3], dims[2]},
            .strides = {strides[0], strides[1], strides[3], strides[2]}};
  }
};

struct CudnnTensor {
  cudnnBackendDescriptor_t descriptor = nullptr;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
};

// For what GPU a plan is made: that of a handle, which then runs it, or one
// that is only described (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR), as tests do it.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  cudnnBackendDescriptor_t properties = nullptr;
};

// The kernels that cuDNN chose for a graph.
struct CudnnPlan {
  CudnnDescriptor plan;
  std::vector<CudnnDescriptor> parts;  // what it was made of
  int64_t workspace_bytes = 0;
};

class CudnnGraph {
 public:
  // Borrows the library.
  explicit CudnnGraph(const CudnnLibrary& library) : library_(library) {}

  // Ids that callers give are below.
  static constexpr int64_t kIdsEnd = 1000;

  // Memory that a run is given by this id. Its rows begin at 16 bytes, those of
  // f32 at 4.
  CudnnTensor Memory(int64_t id, cudnnDataType_t type,
                     const CudnnLayout& layout);
  // One number that a run is given, on the host.
  CudnnTensor Number(int64_t id, cudnnDataType_t type);
  // What lies nowhere.
  CudnnTensor Between(cudnnDataType_t type, const CudnnLayout& layout);

  // c = a b, over the last two dims; leading ones of b may divide those of a.
  void MatMul(const CudnnTensor& a, const CudnnTensor& b, const CudnnTensor& c);
  // y = mode(x), or mode(x, b), b being repeated where its dims are 1.
  void Apply(cudnnPointwiseMode_t mode, const CudnnTensor& x,
             const CudnnTensor& y);
  void Apply(cudnnPointwiseMode_t mode, const CudnnTensor& x,
             const CudnnTensor& b, const CudnnTensor& y);
  // y = where ? x : b.
  void Select(const CudnnTensor& where, const CudnnTensor& x,
              const CudnnTensor& b, const CudnnTensor& y);
  // y = each element's place along an axis of x.
  void Index(int64_t axis, const CudnnTensor& x, const CudnnTensor& y);
  // y = x reduced along the dims that y lacks.
  void Reduce(cudnnReduceTensorOp_t op, const CudnnTensor& x,
              const CudnnTensor& y);
  // y = x, as y lies.
  void Reshape(const CudnnTensor& x, const CudnnTensor& y);

  // The first that cuDNN recommends of the kernels that give the same bits each
  // time. NotFound where it has none; Internal with its reason.
  absl::StatusOr<CudnnPlan> Plan(const CudnnTarget& target) &&;

 private:
  struct Attribute {
    cudnnBackendAttributeName_t name;
    cudnnBackendDescriptor_t value;
  };

  void Check(const absl::Status& status) {
    if (status_.ok()) status_ = status;
  }
  absl::StatusOr<CudnnTensor> NewTensor(
      int64_t id, cudnnDataType_t type, const CudnnLayout& layout,
      absl::Span<const cudnnBackendAttributeName_t> is);
  CudnnTensor AddTensor(int64_t id, cudnnDataType_t type,
                        const CudnnLayout& layout,
                        absl::Span<const cudnnBackendAttributeName_t> is);
  absl::Status AddOperation(cudnnBackendDescriptorType_t type,
                            absl::Span<const Attribute> attributes);
  absl::Status AddPointwise(cudnnPointwiseMode_t mode, int64_t axis,
                            cudnnDataType_t math,
                            std::vector<Attribute> tensors);
  absl::StatusOr<CudnnDescriptor> Finalized(const CudnnTarget& target);
  absl::StatusOr<std::vector<CudnnDescriptor>> Recommended(
      cudnnBackendDescriptor_t graph, const CudnnTarget& target) const;

  const CudnnLibrary& library_;
  absl::Status status_;
  std::vector<CudnnDescriptor> parts_;
  std::vector<cudnnBackendDescriptor_t> operations_;
  int64_t next_between_ = kIdsEnd;
};

}  // namespace troupe::cuda

#endif  // TROUPE_OPS_CUDA_CUDNN_GRAPH_H_
