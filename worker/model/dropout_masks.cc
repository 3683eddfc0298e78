#include "worker/model/dropout_masks.h"

namespace troupe {
namespace {

PhiloxStream Stream(const UnitOptions& options, uint32_t site,
                    const MicroBatchContext& context) {
  return {.seed = options.build.seed,
          .purpose = RandomPurpose::kDropout,
          .site = site,
          .step = static_cast<uint32_t>(context.step)};
}

}  // namespace

DropoutMask HiddenMask(const UnitOptions& options, uint32_t site,
                       const MicroBatchContext& context) {
  if (!context.training) return {};
  const int64_t sequence_elements =
      options.build.shape.sequence_length * options.model.hidden_size();
  return {.probability = static_cast<float>(options.build.dropout),
          .stream = Stream(options, site, context),
          .first_element =
              static_cast<uint64_t>(context.first_sample * sequence_elements)};
}

AttentionDropout AttentionMask(const UnitOptions& options, uint32_t site,
                               const MicroBatchContext& context) {
  if (!context.training) return {};
  return {.probability = static_cast<float>(options.build.dropout),
          .stream = Stream(options, site, context),
          .first_sample = context.first_sample};
}

}  // namespace troupe
