// What a tokenizer.json does to a text before it is split ("normalizer"): a
// list of steps, each of which makes one text of another.
#ifndef TROUPE_STORAGE_DATASET_HUGGING_FACE_NORMALIZER_H_
#define TROUPE_STORAGE_DATASET_HUGGING_FACE_NORMALIZER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "storage/dataset/hugging_face/json_place.h"
#include "storage/dataset/hugging_face/pattern.h"
#include "storage/dataset/hugging_face/pattern_seams.h"

namespace troupe {

// Immutable; thread-safe.
class NormalizerStep {
 public:
  virtual ~NormalizerStep() = default;

  // Sets `out`, which is empty. `continues`: the text goes on with what came
  // before, so what is done at a text's beginning is not done. Errors of
  // Pattern.
  virtual absl::Status Apply(absl::string_view text, bool continues,
                             PatternScratch& scratch,
                             std::string& out) const = 0;
  // Whether Apply would change nothing; false where that is not quickly known.
  virtual bool Keeps(absl::string_view text) const { return false; }
  // Whether it changes a text at its ends only.
  virtual bool IsOfEnds() const { return false; }
  // Whether the parts of a text, each by itself, become the parts of what the
  // text becomes. May say no where it is not known.
  virtual bool IsLocal(const Seam& seam, PatternScratch& scratch) const {
    return true;
  }
};

struct NormalizerScratch {
  std::string first;
  std::string second;
};

class TextNormalizer {
 public:
  // A null has no steps. InvalidArgument for what is not known.
  static absl::StatusOr<TextNormalizer> Parse(const JsonPlace& place);

  bool empty() const { return steps_.empty(); }
  // Valid UTF-8 and its normal form: `text` itself, or in `scratch`.
  absl::StatusOr<absl::string_view> Normalize(absl::string_view text,
                                              bool continues,
                                              PatternScratch& patterns,
                                              NormalizerScratch& scratch) const;
  // What stands at a seam when the parts are normalized each by itself; nothing
  // where the parts would not be those of the whole, or that is not known.
  absl::optional<Seam> SeamAfter(Seam seam, PatternScratch& patterns) const;

 private:
  std::vector<std::shared_ptr<const NormalizerStep>> steps_;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_HUGGING_FACE_NORMALIZER_H_
