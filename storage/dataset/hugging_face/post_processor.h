// The "post_processor" of a tokenizer.json: the special tokens that it puts
// around a text. Encode never does (tokenizer.h); callers that want them ask
// here.
#ifndef TROUPE_STORAGE_DATASET_HUGGING_FACE_POST_PROCESSOR_H_
#define TROUPE_STORAGE_DATASET_HUGGING_FACE_POST_PROCESSOR_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe {

// The ids before a single text, in their order: BOS, [CLS]. Those behind it are
// left out. InvalidArgument, with the place, where the file or its
// post-processor is damaged or says something that is not known.
absl::StatusOr<std::vector<int32_t>> ReadTokensBefore(absl::string_view json);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_HUGGING_FACE_POST_PROCESSOR_H_
