// The prompt of data.sample as tokens.
#ifndef TROUPE_WORKER_RANK_SAMPLE_PROMPT_H_
#define TROUPE_WORKER_RANK_SAMPLE_PROMPT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "storage/dataset/sample_reader.h"
#include "storage/dataset/tokenizer.h"

namespace troupe {

struct SamplePrompt {
  std::unique_ptr<Tokenizer> tokenizer;  // that of the job's token files
  std::vector<int32_t> ids;
};

// InvalidArgument "data.sample...": the token files do not say their tokenizer,
// or it is not there; the prompt has no tokens, has some that the model's
// vocabulary lacks, or its tokens and data.sample.tokens together are more than
// the model sees. Errors of the disk. REQUIRES a resolved job with
// data.sample.
absl::StatusOr<SamplePrompt> SamplePromptOf(const JobSpec& job,
                                            const SampleReader& data);

}  // namespace troupe

#endif  // TROUPE_WORKER_RANK_SAMPLE_PROMPT_H_
