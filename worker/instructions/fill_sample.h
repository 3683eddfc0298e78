// What a worker does for each source of a tensor of the batch: makes it of one
// sample of the job's data. A row for each of proto/plan/batch_sources.h.
#ifndef TROUPE_WORKER_INSTRUCTIONS_FILL_SAMPLE_H_
#define TROUPE_WORKER_INSTRUCTIONS_FILL_SAMPLE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/plan/batch.h"

namespace troupe {

// A window of a token file, as SampleReader makes it.
struct TokenSample {
  std::vector<int32_t> tokens;
  std::vector<int32_t> targets;
  // Where documents begin; empty: they are not isolated.
  std::vector<int32_t> documents;
};

// Writes all of the tensor's elements that are of the sample, `ahead` places
// further where it is of tokens (BatchTensor.ahead).
using FillSample = void (*)(const TokenSample& sample, int ahead, void* to);

// FailedPrecondition where this worker has no row for the source.
absl::StatusOr<FillSample> FindFillSample(absl::string_view source);

// Copies what a rank has of one sample, of elements of element_bytes, one
// behind the other: the box of `whole`, in which runs of a dim follow each
// other.
void CopyPiece(const LoadedPiece& piece, int64_t element_bytes,
               const char* whole, char* to);

}  // namespace troupe

#endif  // TROUPE_WORKER_INSTRUCTIONS_FILL_SAMPLE_H_
