// The kinds of pre-tokenizers, one function for each that makes a step of its
// description. pre_tokenizer.cc lists them in one table.
#ifndef TROUPE_STORAGE_DATASET_HUGGING_FACE_PRE_TOKENIZER_STEPS_H_
#define TROUPE_STORAGE_DATASET_HUGGING_FACE_PRE_TOKENIZER_STEPS_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/dataset/hugging_face/json_place.h"
#include "storage/dataset/hugging_face/pre_tokenizer.h"

namespace troupe {

// None, one or several.
using PreTokenizerStepsOr =
    absl::StatusOr<std::vector<std::shared_ptr<const PreTokenizerStep>>>;

// By a pattern (pattern_splits.cc). Of ByteLevel all but what it does to bytes.
PreTokenizerStepsOr MakeByteLevelSplit(const JsonPlace& place);
PreTokenizerStepsOr MakePatternSplit(const JsonPlace& place);
PreTokenizerStepsOr MakeMetaspace(const JsonPlace& place);

// By classes of characters (character_splits.cc).
PreTokenizerStepsOr MakeDigits(const JsonPlace& place);
PreTokenizerStepsOr MakePunctuation(const JsonPlace& place);
PreTokenizerStepsOr MakeWhitespace(const JsonPlace& place);
PreTokenizerStepsOr MakeWhitespaceSplit(const JsonPlace& place);
PreTokenizerStepsOr MakeBertPreTokenizer(const JsonPlace& place);
PreTokenizerStepsOr MakeDelimiterSplit(const JsonPlace& place);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_HUGGING_FACE_PRE_TOKENIZER_STEPS_H_
