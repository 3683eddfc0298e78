// The layer around ops/layer_norm.h: it knows where its weights lie and fills
// them in. Callers give the ops' arguments with gamma, beta, epsilon (and their
// gradients) left out.
#ifndef TROUPE_WORKER_MODEL_LAYER_NORMALIZATION_H_
#define TROUPE_WORKER_MODEL_LAYER_NORMALIZATION_H_

#include <string>

#include "absl/status/statusor.h"
#include "ops/device.h"
#include "ops/layer_norm.h"
#include "proto/plan.pb.h"
#include "worker/model/tensor_place.h"

namespace troupe {

class LayerNormalization {
 public:
  struct Options {
    std::string prefix;  // of `<prefix>.weight` and `<prefix>.bias`
    int64_t width = 0;
    double epsilon = 1e-5;
  };
  // InvalidArgument as FindParameter.
  static absl::StatusOr<LayerNormalization> Create(const Unit& unit,
                                                   const Options& options);

  void Forward(Device& device, void* parameters, LayerNormArgs args) const;
  void BackwardInput(Device& device, void* parameters,
                     LayerNormBackwardInputArgs args) const;
  // Adds to the flat buffer of gradients.
  void BackwardWeight(Device& device, void* gradients,
                      LayerNormBackwardWeightArgs args) const;

 private:
  LayerNormalization(TensorPlace gamma, TensorPlace beta, float epsilon);

  TensorPlace gamma_;
  TensorPlace beta_;
  float epsilon_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_LAYER_NORMALIZATION_H_
