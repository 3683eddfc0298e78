// The kinds of normalizers, one function for each that makes a step of its
// description. normalizer.cc lists them in one table.
#ifndef TROUPE_STORAGE_DATASET_HUGGING_FACE_NORMALIZER_STEPS_H_
#define TROUPE_STORAGE_DATASET_HUGGING_FACE_NORMALIZER_STEPS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "storage/dataset/hugging_face/json_place.h"
#include "storage/dataset/hugging_face/normalizer.h"

namespace troupe {

using NormalizerStepOr = absl::StatusOr<std::shared_ptr<const NormalizerStep>>;

// Unicode's normal forms (normal_form_steps.cc).
NormalizerStepOr MakeNfc(const JsonPlace& place);
NormalizerStepOr MakeNfd(const JsonPlace& place);
NormalizerStepOr MakeNfkc(const JsonPlace& place);
NormalizerStepOr MakeNfkd(const JsonPlace& place);
// BERT's own, which may remove accents (normal_form_steps.cc).
NormalizerStepOr MakeBertNormalizer(const JsonPlace& place);

// Character by character (character_steps.cc).
NormalizerStepOr MakeLowercase(const JsonPlace& place);
NormalizerStepOr MakeStripAccents(const JsonPlace& place);
NormalizerStepOr MakeNmt(const JsonPlace& place);
NormalizerStepOr MakeByteLevelNormalizer(const JsonPlace& place);

// Others (text_steps.cc).
NormalizerStepOr MakeStrip(const JsonPlace& place);
NormalizerStepOr MakeReplace(const JsonPlace& place);
NormalizerStepOr MakePrepend(const JsonPlace& place);

// A SentencePiece model's table of characters (charsmap_step.cc).
NormalizerStepOr MakePrecompiled(const JsonPlace& place);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_HUGGING_FACE_NORMALIZER_STEPS_H_
