// Where a pattern lets a text be cut.
//
// A text is cut between the characters x and s, behind which y follows. Matches
// are found from left to right, so the parts have the whole text's matches
// where
//
//  1. no match reaches over the place: nothing in the pattern consumes x and
//     then s;
//  2. no match looks over it: the pattern does not look behind, has no anchor,
//     and looks ahead by one character only, where x has not just been
//     consumed.
//
// If, besides, a match begins at s whatever follows y, the place is an end of a
// piece when the text is split by the pattern.
//
// The answers come from the pattern's tree and are on the safe side: false may
// mean that it is not known.
#ifndef TROUPE_STORAGE_DATASET_HUGGING_FACE_PATTERN_SEAMS_H_
#define TROUPE_STORAGE_DATASET_HUGGING_FACE_PATTERN_SEAMS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/dataset/hugging_face/pattern.h"

namespace troupe {

// Code points.
struct Seam {
  uint32_t before = 0;  // x
  uint32_t after = 0;   // s
  uint32_t next = 0;    // y
};

// Immutable; thread-safe.
class PatternSeams {
 public:
  static absl::StatusOr<PatternSeams> Of(const Pattern& pattern);

  // 1 and 2.
  bool IsLocal(const Seam& seam, PatternScratch& scratch) const;
  // And a match begins there.
  bool IsBoundary(const Seam& seam, PatternScratch& scratch) const;

 private:
  struct Item {
    std::vector<Pattern> sets;  // that it may consume characters of
    bool repeats = false;       // or has several parts
    bool looks_ahead = false;   // and consumes nothing
  };
  struct Alternative {
    std::vector<Item> items;
    std::vector<Pattern> starts;  // it alone, where 3 may be asked of it
  };
  static bool Matches(const Item& item, uint32_t code, PatternScratch& scratch);
  static bool Crosses(const Alternative& alternative, const Seam& seam,
                      PatternScratch& scratch);

  bool known_ = true;
  std::vector<Alternative> alternatives_;
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_HUGGING_FACE_PATTERN_SEAMS_H_
