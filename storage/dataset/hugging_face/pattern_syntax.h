// The patterns of tokenizer.json, which are Oniguruma's with Ruby's syntax, as
// a tree. It is printed as a PCRE2 pattern that means the same: `\s`, `\d` and
// `\w` are Oniguruma's classes, `.` and `$` mean what Ruby says. A construct
// that is not known is refused, with the byte where it stands; so is one that
// the two libraries read differently.
//
// The tree also says where a text may be cut (pattern_seams.h).
#ifndef TROUPE_STORAGE_DATASET_HUGGING_FACE_PATTERN_SYNTAX_H_
#define TROUPE_STORAGE_DATASET_HUGGING_FACE_PATTERN_SYNTAX_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace troupe {

struct PatternItem;
using PatternSequence = std::vector<PatternItem>;  // one after another

struct PatternItem {
  enum class Kind {
    kSet,         // one character; `set`, in PCRE2's syntax
    kGroup,       // one of `alternatives`
    kLookAhead,   // consumes nothing; positive or negative
    kLookBehind,  // consumes nothing
    kAnchor,      // consumes nothing; `set`
  };
  Kind kind = Kind::kSet;
  std::string set;
  std::string open;  // of a group or a look: "(?:", "(?!", ...
  std::vector<PatternSequence> alternatives;
  bool ignore_case = false;  // of a set: set outside of it
  std::string quantifier;    // in PCRE2's syntax; empty: once
};

// InvalidArgument for a pattern that is damaged, not known, too long or too
// deep.
absl::StatusOr<std::vector<PatternSequence>> ParsePattern(
    absl::string_view pattern);

// As PCRE2 reads it.
std::string PrintPattern(const std::vector<PatternSequence>& alternatives);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_HUGGING_FACE_PATTERN_SYNTAX_H_
