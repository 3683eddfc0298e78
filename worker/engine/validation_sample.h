// data.sample: the text that is written after each validation, with the
// parameters that the validation used. It takes memory for what it caches of a
// text only while it writes. Where ranks have parts of the model, all ranks
// write it together, as Plan.decoding says; else rank 0 writes and the others
// wait. Rank 0 alone has the prompt and the tokenizer, and tells the others.
#ifndef TROUPE_WORKER_ENGINE_VALIDATION_SAMPLE_H_
#define TROUPE_WORKER_ENGINE_VALIDATION_SAMPLE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "proto/status.pb.h"
#include "worker/engine/sample_peers.h"
#include "worker/model/generator.h"
#include "worker/rank/rank_state.h"
#include "worker/rank/sample_prompt.h"

namespace troupe {

class ValidationSample {
 public:
  // Borrows the state. Null where the rank writes nothing. Errors of
  // SamplePromptOf.
  static absl::StatusOr<std::unique_ptr<ValidationSample>> Create(
      RankState& state);

  // After a validation, while no program runs; on rank 0 the sample. Where a
  // device has no memory for it, or it takes half as long as ranks wait in a
  // collective, the sample says so. `go_on` is asked between tokens; its error
  // ends the text, and is returned, as are those of devices and communicators.
  absl::StatusOr<absl::optional<TextSample>> Write(
      const std::function<absl::Status()>& go_on);

 private:
  explicit ValidationSample(RankState& state) : state_(state) {}

  absl::StatusOr<TextSample> WriteWith(
      SamplePeers& peers, const std::function<absl::Status()>& go_on) const;
  absl::Status Draw(SamplePeers& peers, Generator& generator,
                    const std::function<absl::Status()>& go_on,
                    std::string& text) const;
  // What others draw, on a rank that runs none of the model.
  absl::Status Hear(SamplePeers& peers,
                    const std::function<absl::Status()>& go_on) const;

  RankState& state_;
  SamplePrompt prompt_;       // the tokenizer of rank 0 only
  std::vector<int32_t> end_;  // tokens with which a text ends
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_VALIDATION_SAMPLE_H_
