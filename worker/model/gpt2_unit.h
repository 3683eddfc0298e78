// GPT-2's three kinds of unit, made from the plan: the row "gpt2" of the table
// in build_units.cc. The memory of each is laid out in the order that
// proto/plan/model_gpt2.h describes; the factories refuse a plan that counts
// other bytes.
#ifndef TROUPE_WORKER_MODEL_GPT2_UNIT_H_
#define TROUPE_WORKER_MODEL_GPT2_UNIT_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "worker/model/model_unit.h"
#include "worker/model/unit_options.h"

namespace troupe {

absl::StatusOr<std::unique_ptr<ModelUnit>> NewGpt2Unit(
    const UnitOptions& options);

// What NewGpt2Unit makes of a BLOCK; in gpt2_block.cc.
absl::StatusOr<std::unique_ptr<ModelUnit>> NewGpt2Block(
    const UnitOptions& options);

// GPT-2's places of dropout, each with its own stream of random numbers: one
// behind the embedding, three in each block.
enum class Gpt2DropoutSite { kAttention = 0, kAfterAttention, kAfterMlp };
inline constexpr uint32_t kGpt2EmbeddingDropoutSite = 0;
inline uint32_t Gpt2BlockDropoutSite(int64_t layer, Gpt2DropoutSite site) {
  return static_cast<uint32_t>(1 + 3 * layer + static_cast<int64_t>(site));
}

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_GPT2_UNIT_H_
