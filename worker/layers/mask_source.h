// Where the masks of an op's dropout come from: each has a site, a stream of
// random numbers of its own, and is indexed by the global batch, so that any
// plan draws the same. Nothing is masked outside of training.
#ifndef TROUPE_WORKER_LAYERS_MASK_SOURCE_H_
#define TROUPE_WORKER_LAYERS_MASK_SOURCE_H_

#include <cstdint>

#include "ops/attention.h"
#include "ops/dropout.h"
#include "proto/unit.pb.h"
#include "worker/layers/layer.h"

namespace troupe {

class MaskSource {
 public:
  MaskSource() = default;  // masks nothing
  struct Options {
    uint64_t seed = 0;  // of the job
    int64_t layer = 0;  // of the unit
    // Of the whole tensor that is masked, and those of a micro-batch that are
    // on ranks before this one.
    int64_t elements_per_sample = 0;
    int64_t elements_before = 0;
    // Of attention: of this rank's heads the first, and how many there are.
    int64_t first_head = 0;
    int64_t heads = 0;
  };
  MaskSource(const Op::Mask& mask, const Options& options);

  // Over the elements of the tensor in this micro-batch.
  DropoutMask OfElements(const LayerCall& call) const;
  // Over the probabilities of an attention.
  AttentionDropout OfProbabilities(const LayerCall& call) const;

 private:
  PhiloxStream Stream(const LayerCall& call) const;

  float probability_ = 0;
  uint64_t seed_ = 0;
  uint32_t site_ = 0;
  int64_t elements_per_sample_ = 0;
  int64_t elements_before_ = 0;
  int64_t first_head_ = 0;
  int64_t heads_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_LAYERS_MASK_SOURCE_H_
