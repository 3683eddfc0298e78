// Texts as Python's str sees them: characters are code points, and methods do
// what its methods do. Texts are valid UTF-8.
#ifndef TROUPE_STORAGE_CHAT_TEMPLATE_PYTHON_TEXT_H_
#define TROUPE_STORAGE_CHAT_TEMPLATE_PYTHON_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace troupe::chat {

// The character at byte `at`, which moves behind it. Requires one there.
uint32_t TakeCharacter(absl::string_view text, size_t& at);
void AppendCharacter(uint32_t code, std::string& out);
int64_t CharacterCount(absl::string_view text);
std::vector<std::string> CharactersOf(absl::string_view text);
// The byte at which character `index` begins; the end where there are no more.
size_t PlaceOfCharacter(absl::string_view text, int64_t index);

bool IsSpace(uint32_t code);  // str.isspace

// str.strip, lstrip, rstrip. `characters`: what is taken away; none: spaces.
struct StripSides {
  bool left = true;
  bool right = true;
};
std::string Strip(absl::string_view text,
                  const std::optional<std::string>& characters,
                  StripSides sides);

// str.split and rsplit; `most` splits at most, -1: all. Requires a separator
// that is not empty, where there is one; none: runs of spaces.
std::vector<std::string> Split(absl::string_view text,
                               const std::optional<std::string>& separator,
                               int64_t most);
std::vector<std::string> SplitFromRight(
    absl::string_view text, const std::optional<std::string>& separator,
    int64_t most);
std::vector<std::string> SplitLines(absl::string_view text, bool keep_ends);
// How many parts Split makes, if `most` lets it, and SplitLines at most.
size_t CountParts(absl::string_view text,
                  const std::optional<std::string>& separator);
size_t CountLines(absl::string_view text);

// str.replace; `most` as above. Empty where more than `bytes_max` would come.
std::optional<std::string> Replace(absl::string_view text,
                                   absl::string_view from, absl::string_view to,
                                   int64_t most, size_t bytes_max);

std::string Upper(absl::string_view text);
std::string Lower(absl::string_view text);
std::string Capitalize(absl::string_view text);
std::string Title(absl::string_view text);  // str.title

}  // namespace troupe::chat

#endif  // TROUPE_STORAGE_CHAT_TEMPLATE_PYTHON_TEXT_H_
