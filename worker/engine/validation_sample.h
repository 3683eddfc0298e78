// data.sample: the text that rank 0 writes after each validation, with the
// parameters that the validation used. It takes memory for what it caches of a
// text only while it writes.
//
// The parameters lie where the plan lays them, so the units are those of the
// model with the offsets of the plan's.
#ifndef TROUPE_WORKER_ENGINE_VALIDATION_SAMPLE_H_
#define TROUPE_WORKER_ENGINE_VALIDATION_SAMPLE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <set>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/status.pb.h"
#include "worker/rank/rank_state.h"
#include "worker/rank/sample_prompt.h"

namespace troupe {

class ValidationSample {
 public:
  // Borrows the state. Null where the job has no sample, or the rank is not the
  // first. Errors of SamplePromptOf.
  static absl::StatusOr<std::unique_ptr<ValidationSample>> Create(
      const RankState& state);

  // After the validation of a step. REQUIRES that PARAMETERS are whole, and that nothing changes them. Where
  // the device has no memory for it, or it takes half as long as the other
  // ranks wait in a collective, the sample says so. `go_on` is asked between
  // tokens; its error ends the text, and is returned, as are the device's.
  absl::StatusOr<TextSample> Write(
      int64_t step, const std::function<absl::Status()>& go_on) const;

 private:
  ValidationSample(const RankState& state, SamplePrompt prompt,
                   std::set<int32_t> end);

  const RankState& state_;
  const SamplePrompt prompt_;
  const std::set<int32_t> end_;  // tokens with which a text ends
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_VALIDATION_SAMPLE_H_
