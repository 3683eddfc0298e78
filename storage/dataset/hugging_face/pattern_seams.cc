#include "storage/dataset/hugging_face/pattern_seams.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/dataset/hugging_face/characters.h"

namespace troupe {
namespace {

using Kind = PatternItem::Kind;

// Patterns with more are not looked into.
constexpr size_t kSetsMax = 256;

// The sets of an item and of what is within; false where there is something
// among it that is not looked into.
bool CollectSets(const PatternItem& item, std::vector<PatternItem>& sets) {
  if (item.kind == Kind::kSet) {
    sets.push_back(item);
    return true;
  }
  if (item.kind != Kind::kGroup) return false;
  for (const PatternSequence& alternative : item.alternatives) {
    for (const PatternItem& inner : alternative) {
      if (!CollectSets(inner, sets)) return false;
    }
  }
  return true;
}

// One character.
bool LooksAtOne(const PatternItem& look) {
  return std::all_of(look.alternatives.begin(), look.alternatives.end(),
                     [](const PatternSequence& alternative) {
                       return alternative.size() == 1 &&
                              alternative[0].kind == Kind::kSet &&
                              alternative[0].quantifier.empty();
                     });
}

// Gives back nothing of what it took, unless that is one character or all.
bool KeepsWhatItTook(const PatternItem& item) {
  if (item.kind != Kind::kSet) {
    if (item.open == "(?>") return true;
    for (const PatternSequence& alternative : item.alternatives) {
      for (const PatternItem& inner : alternative) {
        if (KeepsWhatItTook(inner)) return true;
      }
    }
  }
  return item.quantifier == "++" || item.quantifier == "*+" ||
         (item.kind != Kind::kSet && item.quantifier == "?+");
}

}  // namespace

absl::StatusOr<PatternSeams> PatternSeams::Of(const Pattern& pattern) {
  PatternSeams seams;
  PatternScratch scratch;
  size_t set_count = 0;
  for (const PatternSequence& sequence : pattern.alternatives()) {
    Alternative alternative;
    bool looks = false;
    bool keeps = false;
    for (size_t i = 0; i < sequence.size(); ++i) {
      const PatternItem& part = sequence[i];
      Item item;
      if (part.kind == Kind::kLookAhead) {
        seams.known_ &= LooksAtOne(part);
        item.looks_ahead = looks = true;
        alternative.items.push_back(std::move(item));
        continue;
      }
      keeps |= i + 1 < sequence.size() && KeepsWhatItTook(part);
      std::vector<PatternItem> sets;
      seams.known_ &= CollectSets(part, sets);
      item.repeats =
          part.kind == Kind::kGroup ||
          (!part.quantifier.empty() && !absl::StartsWith(part.quantifier, "?"));
      set_count += sets.size();
      if (set_count > kSetsMax) seams.known_ = false;
      if (!seams.known_) return seams;
      for (PatternItem& set : sets) {
        set.quantifier.clear();
        ASSIGN_OR_RETURN(Pattern compiled,
                         Pattern::OfTree({PatternSequence{std::move(set)}}));
        item.sets.push_back(std::move(compiled));
      }
      alternative.items.push_back(std::move(item));
    }
    // One that may consume nothing matches everywhere.
    ASSIGN_OR_RETURN(Pattern alone, [&] {
      PatternSequence consuming;
      for (const PatternItem& part : sequence) {
        if (part.kind != Kind::kLookAhead) consuming.push_back(part);
      }
      return Pattern::OfTree({std::move(consuming)});
    }());
    const absl::StatusOr<bool> empty = alone.MatchesWhole("", scratch);
    if (!empty.ok() || *empty) seams.known_ = false;
    if (!seams.known_) return seams;
    if (!looks && !keeps) alternative.starts.push_back(std::move(alone));
    seams.alternatives_.push_back(std::move(alternative));
  }
  return seams;
}

bool PatternSeams::Matches(const Item& item, uint32_t code,
                           PatternScratch& scratch) {
  const std::string text = CharacterText(code);
  return std::any_of(item.sets.begin(), item.sets.end(),
                     [&](const Pattern& set) {
                       return set.MatchesWhole(text, scratch).value_or(true);
                     });
}

// Whether a match of it may consume, or have looked at, x and then s.
bool PatternSeams::Crosses(const Alternative& alternative, const Seam& seam,
                           PatternScratch& scratch) {
  bool has_before = false;  // an item before this one may consume x
  for (const Item& item : alternative.items) {
    if (item.looks_ahead) {
      if (has_before) return true;
      continue;
    }
    const bool after = Matches(item, seam.after, scratch);
    if (has_before && after) return true;
    const bool before = Matches(item, seam.before, scratch);
    if (before && after && item.repeats) return true;
    has_before |= before;
  }
  return false;
}

bool PatternSeams::IsLocal(const Seam& seam, PatternScratch& scratch) const {
  return known_ && std::none_of(alternatives_.begin(), alternatives_.end(),
                                [&](const Alternative& alternative) {
                                  return Crosses(alternative, seam, scratch);
                                });
}

bool PatternSeams::IsBoundary(const Seam& seam, PatternScratch& scratch) const {
  if (!IsLocal(seam, scratch)) return false;
  const std::string one = CharacterText(seam.after);
  const std::string two = absl::StrCat(one, CharacterText(seam.next));
  for (const Alternative& alternative : alternatives_) {
    for (const Pattern& start : alternative.starts) {
      if (start.MatchesStart(one, scratch).value_or(false) ||
          start.MatchesStart(two, scratch).value_or(false)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace troupe
