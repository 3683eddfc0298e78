#include "worker/layers/mask_source.h"

#include "proto/base/philox.h"

namespace troupe {

MaskSource::MaskSource(const Op::Mask& mask, const Options& options)
    : probability_(static_cast<float>(mask.probability())),
      seed_(options.seed),
      site_(static_cast<uint32_t>(mask.site() +
                                  options.layer * mask.sites_per_layer())),
      elements_per_sample_(options.elements_per_sample),
      elements_before_(options.elements_before),
      first_head_(options.first_head),
      heads_(options.heads) {}

PhiloxStream MaskSource::Stream(const LayerCall& call) const {
  return {.seed = seed_,
          .purpose = RandomPurpose::kDropout,
          .site = site_,
          .step = static_cast<uint32_t>(call.context.step)};
}

DropoutMask MaskSource::OfElements(const LayerCall& call) const {
  if (probability_ == 0 || !call.context.training) return {};
  return {
      .probability = probability_,
      .stream = Stream(call),
      .first_element = static_cast<uint64_t>(
          call.context.first_sample * elements_per_sample_ + elements_before_)};
}

AttentionDropout MaskSource::OfProbabilities(const LayerCall& call) const {
  if (probability_ == 0 || !call.context.training) return {};
  return {.probability = probability_,
          .stream = Stream(call),
          .first_sample = call.context.first_sample,
          .first_head = first_head_,
          .total_heads = heads_};
}

}  // namespace troupe
