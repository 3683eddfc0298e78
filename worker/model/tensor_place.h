// Where a tensor lies inside a larger buffer, known before the buffer is: the
// parameters of a flat buffer, the parts of a stash. A unit fixes the places
// once, in its constructor, and turns them into tensors with the buffer of each
// call:
//
//   BufferLayout stash;
//   const TensorPlace mean = stash.Add({rows});
//   const TensorPlace qkv = stash.Add({batch, time, 3 * width});
//   ... allocate stash.bytes() ...
//   Tensor t = qkv.In(buffers.stash);
#ifndef TROUPE_WORKER_MODEL_TENSOR_PLACE_H_
#define TROUPE_WORKER_MODEL_TENSOR_PLACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "ops/tensor.h"
#include "proto/cluster.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

struct TensorPlace {
  int64_t offset_bytes = 0;
  DType dtype = DType::kF32;
  std::vector<int64_t> dims;  // 1 to 4

  Tensor In(void* buffer) const;
};

// Lays tensors one after another, each on a cache line (Device::kAlignment), as
// proto/plan/model counts them.
class BufferLayout {
 public:
  TensorPlace Add(std::vector<int64_t> dims, DType dtype = DType::kF32);
  int64_t bytes() const { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

// The place of a parameter in its unit's flat buffers: of parameters, in the
// plan's dtype, and of their gradients, which are f32.
// One without dims stands for an optional parameter left out.
struct ParameterPlace {
  bool defined() const { return !values.dims.empty(); }

  TensorPlace values;
  TensorPlace gradient;
};

// InvalidArgument when the unit has no parameter of that name, or it has
// another shape or a dtype that no kernel computes with.
absl::StatusOr<ParameterPlace> FindParameter(const Unit& unit,
                                             const std::string& name,
                                             const std::vector<int64_t>& dims);

// One parameter that is both, `below` under `above` along the first dim;
// nothing where there is a gap between them.
absl::optional<ParameterPlace> JoinRows(const ParameterPlace& above,
                                        const ParameterPlace& below);

// The dtype of tensors of a plan's parameters or activations. REQUIRES F32 or
// BF16.
DType ComputeDType(ElementType type);

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_TENSOR_PLACE_H_
