// The field "pattern" of normalizers, pre-tokenizers and decoders:
// {"String": "..."} or {"Regex": "..."}.
#ifndef TROUPE_STORAGE_DATASET_HUGGING_FACE_PATTERN_FIELD_H_
#define TROUPE_STORAGE_DATASET_HUGGING_FACE_PATTERN_FIELD_H_

#include "absl/status/statusor.h"
#include "storage/dataset/hugging_face/json_place.h"
#include "storage/dataset/hugging_face/pattern.h"

namespace troupe {

// Of `object`. InvalidArgument, with the place.
absl::StatusOr<Pattern> PatternField(const JsonPlace& object);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_HUGGING_FACE_PATTERN_FIELD_H_
