#include "worker/layers/mask_source.h"

#include "proto/base/philox.h"

namespace troupe {

Tensor MaskedRows::Of(const Tensor& tensor, int64_t all) const {
  const bool is_all = rows.count == 0 || rows.count == all;
  if (is_all || !tensor.defined()) return tensor;
  const int64_t columns = tensor.elements() / all;
  const Tensor flat =
      tensor.rank() > 2 ? tensor.View({all, columns}) : tensor.Flat();
  return flat.Slice(0, rows.local, rows.local + rows.count);
}

MaskSource::MaskSource(const Op::Mask& mask, const Options& options)
    : probability_(static_cast<float>(mask.probability())),
      seed_(options.seed),
      site_(static_cast<uint32_t>(mask.site() +
                                  options.layer * mask.sites_per_layer())),
      columns_(options.columns),
      own_columns_(options.own_columns),
      rows_per_sample_(options.rows_per_sample),
      rows_(options.rows),
      first_sample_(options.first_sample),
      first_head_(options.first_head),
      heads_(options.heads) {}

PhiloxStream MaskSource::Stream(const LayerCall& call) const {
  return {.seed = seed_,
          .purpose = RandomPurpose::kDropout,
          .site = site_,
          .step = static_cast<uint32_t>(call.context.step)};
}

std::vector<MaskedRows> MaskSource::OfElements(const LayerCall& call) const {
  if (probability_ == 0 || !call.context.training) return {{}};
  const int64_t rows_before = call.context.first_sample * rows_per_sample_;
  const bool is_cut = own_columns_.size() < columns_;
  std::vector<MaskedRows> masked;
  for (const SliceRun& run : rows_) {
    masked.push_back({.rows = run,
                      .mask = {.probability = probability_,
                               .stream = Stream(call),
                               .first_element = static_cast<uint64_t>(
                                   (rows_before + run.whole) * columns_ +
                                   own_columns_.begin),
                               .columns = is_cut ? own_columns_.size() : 0,
                               .row_stride = is_cut ? columns_ : 0}});
  }
  return masked;
}

AttentionDropout MaskSource::OfProbabilities(const LayerCall& call) const {
  if (probability_ == 0 || !call.context.training) return {};
  return {.probability = probability_,
          .stream = Stream(call),
          .first_sample = call.context.first_sample + first_sample_,
          .first_head = first_head_,
          .total_heads = heads_};
}

}  // namespace troupe
