// Characters as the `tokenizers` library sees them: code points of valid UTF-8,
// and the classes of Rust's char and of its Unicode crates.
#ifndef TROUPE_STORAGE_DATASET_HUGGING_FACE_CHARACTERS_H_
#define TROUPE_STORAGE_DATASET_HUGGING_FACE_CHARACTERS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace troupe {

struct Character {
  uint32_t code = 0;
  size_t bytes = 0;
};

// The character that begins at byte `at`, or that ends before it. Require valid
// UTF-8 and that there is one.
Character CharacterAt(absl::string_view text, size_t at);
Character CharacterBefore(absl::string_view text, size_t at);

void AppendCharacter(uint32_t code, std::string& out);
std::string CharacterText(uint32_t code);

// Returns `text`, or, where it is not valid UTF-8, a copy in `storage` in which
// each maximal invalid part is U+FFFD, as Python's errors="replace" does it.
absl::string_view ValidText(absl::string_view text, std::string& storage);

bool IsWhitespace(uint32_t code);  // Unicode's White_Space
bool IsNumeric(uint32_t code);     // Nd, Nl, No
bool IsWord(uint32_t code);        // Alphabetic, M*, Nd, Pc, Join_Control
// As of Unicode 8.
bool IsPunctuation(uint32_t code);     // of ASCII all symbols, else P*
bool IsControl(uint32_t code);         // Cc, Cf, Co
bool IsNonspacingMark(uint32_t code);  // Mn
// As of Unicode 9.
bool IsMark(uint32_t code);       // M*
bool IsLetter(uint32_t code);     // L*
bool IsIdeograph(uint32_t code);  // what BERT calls Chinese

// One character's lower case, whatever stands beside it.
void AppendLowercase(uint32_t code, std::string& out);

// The character by which byte-level vocabularies write a byte: itself where it
// is printed in Latin-1, else the next after U+00FF.
uint32_t ByteCharacter(uint8_t byte);
// The byte that a character stands for there; -1 where it stands for none.
int ByteOfCharacter(uint32_t code);
// A text written so; and back, or the text itself where a character of it
// stands for no byte.
std::string BytesAsCharacters(absl::string_view text);
std::string CharactersAsBytes(absl::string_view text);

}  // namespace troupe

#endif  // TROUPE_STORAGE_DATASET_HUGGING_FACE_CHARACTERS_H_
