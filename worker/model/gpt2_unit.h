// GPT-2's three kinds of unit, made from the plan: the row "gpt2" of the table
// in build_units.cc. The memory of each is laid out in its source in the order
// that proto/plan/model_gpt2.h describes; the factories refuse a plan that
// counts other bytes.
#ifndef TROUPE_WORKER_MODEL_GPT2_UNIT_H_
#define TROUPE_WORKER_MODEL_GPT2_UNIT_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/dropout.h"
#include "proto/plan.pb.h"
#include "worker/model/model_unit.h"
#include "worker/model/unit_options.h"

namespace troupe {

absl::StatusOr<std::unique_ptr<ModelUnit>> NewGpt2Unit(
    const UnitOptions& options);

// What NewGpt2Unit chooses among; each is in the source named after it.
absl::StatusOr<std::unique_ptr<ModelUnit>> NewGpt2Embedding(
    const UnitOptions& options);
absl::StatusOr<std::unique_ptr<ModelUnit>> NewGpt2Block(
    const UnitOptions& options);
absl::StatusOr<std::unique_ptr<ModelUnit>> NewGpt2Head(
    const UnitOptions& options);

// GPT-2's places of dropout, each with its own stream of random numbers: one
// behind the embedding, three in each block.
enum class Gpt2DropoutSite { kAttention = 0, kAfterAttention, kAfterMlp };
inline constexpr uint32_t kGpt2EmbeddingDropoutSite = 0;
inline uint32_t Gpt2BlockDropoutSite(int64_t layer, Gpt2DropoutSite site) {
  return static_cast<uint32_t>(1 + 3 * layer + static_cast<int64_t>(site));
}

// The mask of one site over [sequences, time, width] of this micro-batch;
// nothing is dropped outside of training.
DropoutMask Gpt2Mask(const UnitOptions& options, uint32_t site,
                     const MicroBatchContext& context);

// What the layout came to, against what the plan reserves.
struct Gpt2Bytes {
  int64_t activation = 0;
  int64_t stash = 0;
  int64_t weight_stash = 0;
  int64_t workspace = 0;
};
absl::Status CheckGpt2Bytes(const Unit& unit, const Gpt2Bytes& bytes);

}  // namespace troupe

#endif  // TROUPE_WORKER_MODEL_GPT2_UNIT_H_
