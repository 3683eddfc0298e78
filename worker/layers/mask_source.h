// Where the masks of an op's dropout come from: each has a site, a stream of
// random numbers of its own, and is indexed by the global batch, so that any
// plan draws the same. Nothing is masked outside of training.
#ifndef TROUPE_WORKER_LAYERS_MASK_SOURCE_H_
#define TROUPE_WORKER_LAYERS_MASK_SOURCE_H_

#include <cstdint>
#include <vector>

#include "ops/attention.h"
#include "ops/dropout.h"
#include "ops/tensor.h"
#include "proto/plan/slices.h"
#include "proto/unit.pb.h"
#include "worker/layers/layer.h"

namespace troupe {

// Rows of a tensor [batch, sequence, ...] that are masked by one range of
// elements.
struct MaskedRows {
  SliceRun rows;  // of the sequences together; count 0: all there are
  DropoutMask mask;

  // These of a dense tensor of as many rows as the masked one, which has
  // `all`; the tensor itself where they are all, and where there is none.
  Tensor Of(const Tensor& tensor, int64_t all) const;
};

class MaskSource {
 public:
  MaskSource() = default;  // masks nothing
  struct Options {
    uint64_t seed = 0;  // of the job
    int64_t layer = 0;  // of the unit
    // Of the tensor that is masked: columns, and which of them this rank has;
    // rows of a whole sample, and those rows of a micro-batch that it has.
    int64_t columns = 0;
    Range own_columns;
    int64_t rows_per_sample = 0;
    std::vector<SliceRun> rows;
    // Of attention: of this rank's samples and heads the first, and how many
    // heads there are.
    int64_t first_sample = 0;
    int64_t first_head = 0;
    int64_t heads = 0;
  };
  MaskSource(const Op::Mask& mask, const Options& options);

  // Over the elements of the tensor in this micro-batch: as few ranges of its
  // rows as there can be, one where nothing is masked.
  std::vector<MaskedRows> OfElements(const LayerCall& call) const;
  // Over the probabilities of an attention.
  AttentionDropout OfProbabilities(const LayerCall& call) const;

 private:
  PhiloxStream Stream(const LayerCall& call) const;

  float probability_ = 0;
  uint64_t seed_ = 0;
  uint32_t site_ = 0;
  int64_t columns_ = 0;
  Range own_columns_;
  int64_t rows_per_sample_ = 0;
  std::vector<SliceRun> rows_;
  int64_t first_sample_ = 0;
  int64_t first_head_ = 0;
  int64_t heads_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_LAYERS_MASK_SOURCE_H_
