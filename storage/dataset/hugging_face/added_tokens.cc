#include "storage/dataset/hugging_face/added_tokens.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "storage/dataset/hugging_face/characters.h"

namespace troupe {
namespace {

absl::StatusOr<AddedToken> ParseToken(const JsonPlace& place) {
  RETURN_IF_ERROR(place.CheckKeys({"id", "content", "special", "single_word",
                                   "lstrip", "rstrip", "normalized"}));
  AddedToken token;
  ASSIGN_OR_RETURN(token.content, place.Text("content"));
  if (token.content.empty()) return place.Error("\"content\" is empty");
  ASSIGN_OR_RETURN(const int64_t id, place.Integer("id", 0, (1 << 24) - 1));
  token.id = static_cast<int32_t>(id);
  ASSIGN_OR_RETURN(token.special, place.FlagOr("special", false));
  ASSIGN_OR_RETURN(token.single_word, place.FlagOr("single_word", false));
  ASSIGN_OR_RETURN(token.strip_left, place.FlagOr("lstrip", false));
  ASSIGN_OR_RETURN(token.strip_right, place.FlagOr("rstrip", false));
  ASSIGN_OR_RETURN(token.normalized,
                   place.FlagOr("normalized", !token.special));
  return token;
}

}  // namespace

absl::StatusOr<std::vector<AddedToken>> ParseAddedTokens(
    const JsonPlace& place, const Vocabulary& vocabulary) {
  std::vector<AddedToken> tokens;
  if (place.IsNull()) return tokens;
  ASSIGN_OR_RETURN(const std::vector<JsonPlace> list, place.Elements());
  const int64_t count = static_cast<int64_t>(vocabulary.count());
  int64_t next = count;
  absl::flat_hash_map<std::string, int32_t> ids;
  for (const JsonPlace& at : list) {
    ASSIGN_OR_RETURN(AddedToken token, ParseToken(at));
    int64_t id = vocabulary.IdOf(token.content);
    if (id == kNoToken) id = next++;
    if (!ids.emplace(token.content, token.id).second) {
      return at.Error("its content comes twice");
    }
    if (id != token.id) {
      return at.Error(absl::StrCat(
          "\"id\" is ", token.id, ", but the tokenizers library gives it ", id,
          id < next - 1 ? ", which it has in the vocabulary"
                        : ", the next behind the vocabulary"));
    }
    if (vocabulary.Has(id) && vocabulary.texts()[id] != token.content) {
      return at.Error(absl::StrCat(
          "\"id\" ", id, " is that of another piece of the vocabulary"));
    }
    next = std::max(next, id + 1);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

void TokenFinder::Add(absl::string_view text, const AddedToken& token) {
  if (text.empty()) return;
  trie_.Add(text, static_cast<int32_t>(tokens_.size()));
  tokens_.push_back(token);
  begins_[static_cast<uint8_t>(text[0])] = true;
  longest_ = std::max(longest_, text.size());
}

TokenFinder::Match TokenFinder::Next(absl::string_view text,
                                     size_t from) const {
  for (size_t at = from; at < text.size(); ++at) {
    if (!begins_[static_cast<uint8_t>(text[at])]) continue;
    Match match;
    trie_.ForEachPrefix(text.substr(at), [&](int32_t index, size_t bytes) {
      match = {at, at + bytes, &tokens_[index]};
    });
    if (match.token != nullptr) return match;
  }
  return Match();
}

bool TokenFinder::IsSingleWord(absl::string_view text, const Match& match) {
  const bool before =
      match.begin > 0 && IsWord(CharacterBefore(text, match.begin).code);
  const bool after =
      match.end < text.size() && IsWord(CharacterAt(text, match.end).code);
  return !before && !after;
}

size_t TokenFinder::SpacesBegin(absl::string_view text, size_t end) {
  while (end > 0) {
    const Character character = CharacterBefore(text, end);
    if (!IsWhitespace(character.code)) break;
    end -= character.bytes;
  }
  return end;
}

size_t TokenFinder::SpacesEnd(absl::string_view text, size_t begin) {
  while (begin < text.size()) {
    const Character character = CharacterAt(text, begin);
    if (!IsWhitespace(character.code)) break;
    begin += character.bytes;
  }
  return begin;
}

bool TokenFinder::Touches(absl::string_view text, size_t at) const {
  bool touches = false;
  for (size_t begin = at - std::min(at, longest_); begin <= at; ++begin) {
    if (begin == text.size() || !begins_[static_cast<uint8_t>(text[begin])]) {
      continue;
    }
    trie_.ForEachPrefix(text.substr(begin), [&](int32_t index, size_t bytes) {
      touches |= begin + bytes >= at;
    });
  }
  return touches;
}

}  // namespace troupe
