// How a tokenizer.json splits a normalized text into the pieces that its model
// gets one by one ("pre_tokenizer"): a list of steps, each of which splits the
// pieces of the one before.
#ifndef TROUPE_STORAGE_DATASET_HUGGING_FACE_PRE_TOKENIZER_H_
#define TROUPE_STORAGE_DATASET_HUGGING_FACE_PRE_TOKENIZER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "storage/dataset/hugging_face/json_place.h"
#include "storage/dataset/hugging_face/pattern.h"
#include "storage/dataset/hugging_face/pattern_seams.h"
#include "storage/dataset/hugging_face/split.h"

namespace troupe {

// A text, and its pieces in order. A step may write another text.
struct SplitText {
  absl::string_view text;
  std::vector<TextSpan> spans;
  std::string storage;
};

// Where a text stands.
struct TextPlace {
  bool at_start = false;   // it begins where the whole text does
  bool continues = false;  // it goes on with what came before
};

enum class SeamKind {
  kUnknown,   // the parts may have other pieces than the whole
  kLocal,     // they have the same, but one piece may lie on both
  kBoundary,  // a piece ends there
};

// Immutable; thread-safe.
class PreTokenizerStep {
 public:
  virtual ~PreTokenizerStep() = default;
  // Sets `out`'s spans, which are empty, and its text. Errors of Pattern.
  virtual absl::Status Apply(const SplitText& in, const TextPlace& place,
                             PatternScratch& scratch, SplitText& out) const = 0;
  // What the step does at a seam of its text; sets what stands there after it.
  virtual SeamKind At(Seam& seam, PatternScratch& scratch) const = 0;
  // Whether it puts something before pieces; not before the first where the
  // text continues.
  virtual bool AddsPrefix() const { return false; }
  // Whether it puts something before the first piece of a text only.
  virtual bool AddsPrefixToFirst() const { return false; }
};

class PreTokenizer {
 public:
  // A null has no steps. InvalidArgument for what is not known.
  static absl::StatusOr<PreTokenizer> Parse(const JsonPlace& place);

  // Whether the model gets each byte of a piece as a character (ByteLevel).
  bool byte_level() const { return byte_level_; }

  // Splits `text`, valid UTF-8; the pieces are in what is returned, which is
  // one of the two.
  absl::StatusOr<const SplitText*> Split(absl::string_view text,
                                         TextPlace place,
                                         PatternScratch& scratch,
                                         SplitText& first,
                                         SplitText& second) const;

  // What all steps do at a seam; kBoundary only where Split of the later part,
  // with `continues`, gives its pieces of the whole. Sets what stands there for
  // the model.
  SeamKind At(Seam& seam, PatternScratch& scratch) const;

 private:
  friend struct PreTokenizerParser;
  std::vector<size_t> PrefixSteps() const;

  std::vector<std::shared_ptr<const PreTokenizerStep>> steps_;
  bool byte_level_ = false;
  // The first step puts something before pieces, so a text that continues is
  // told to it. Otherwise such a step gets pieces of earlier ones, and a text
  // is cut between those only.
  bool first_adds_prefix_ = false;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_HUGGING_FACE_PRE_TOKENIZER_H_
