// Where a parameter lies in the flat buffers of its unit: of parameters, in the
// plan's dtype, and of their gradients, whose dtype a call says.
#ifndef TROUPE_WORKER_LAYERS_PARAMETER_PLACE_H_
#define TROUPE_WORKER_LAYERS_PARAMETER_PLACE_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/optional.h"
#include "ops/tensor.h"
#include "proto/unit.pb.h"
#include "worker/layers/layer.h"

namespace troupe {

class ParameterPlace {
 public:
  ParameterPlace() = default;  // an optional one that is left out
  // `tied`: in the flat buffers of the unit that the call's is tied to.
  // REQUIRES one to three dims.
  ParameterPlace(const Parameter& parameter, bool tied);

  bool exists() const { return dims_[0] > 0; }
  int64_t dim(int index) const { return dims_[index]; }  // 0: fewer dims
  int64_t rows() const { return dims_[0]; }
  int64_t columns() const { return dims_[1]; }  // 0: a vector

  // Whether it has a gradient: it is there, and not frozen.
  bool trained() const { return exists() && !frozen_; }

  // Empty where it is left out; the gradient where it is not trained, too.
  Tensor Values(const LayerCall& call) const;
  Tensor Gradient(const LayerCall& call) const;

  // The one parameter that is this and, below its last row, `below`; nothing
  // where there is a gap between them, or one of them is frozen.
  absl::optional<ParameterPlace> JoinedWith(const ParameterPlace& below) const;

 private:
  int64_t Elements() const;
  Tensor In(const FlatMemory& flat, DType dtype) const;

  bool tied_ = false;
  bool frozen_ = false;
  DType dtype_ = DType::kF32;
  int64_t offset_ = 0;  // elements
  std::array<int64_t, 3> dims_{};
};

}  // namespace troupe

#endif  // TROUPE_WORKER_LAYERS_PARAMETER_PLACE_H_
